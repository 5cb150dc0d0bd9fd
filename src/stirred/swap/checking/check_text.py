"""Writes the page of text that ``print`` shows of the check of a swap. Confidential, as the check is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from math import inf

import numpy as np

from stirred.errors import listed
from stirred.invariants import Beliefs
from stirred.releases.folder.documents import code_line, fill, findings_and_stops, named_rows
from stirred.semantics.sentences.formatting import columns
from stirred.spec import Specification
from stirred.spec.exact import display, display_down
from stirred.swap.checking.agreeing_columns import MOST_COLUMNS as LOOKED_COLUMNS
from stirred.swap.checking.comparison import DISTANCES, LossBy
from stirred.swap.checking.forecast import ExpectedTable
from stirred.swap.checking.movement import RuleEffects, Unchangeable, UniqueRows
from stirred.swap.checking.plan_check import SwapCheck, WhatIf
from stirred.swap.checking.revealing import WIDTHS, Revealing
from stirred.swap.law import theorem
from stirred.swap.plan.fields import SwapPlan

_NOT_FORECAST = (
    "not forecast. With rates by rule, or with several rounds, only counts of records can be forecast; with both "
    "together, only tables that are kept exactly."
)
_SHOWN_CELLS = 40
_SHOWN_TOLD = 6
_PLACES_THAT_STAY = 8
_NAMES = {"absolute": "absolute", "relative": "relative", "root": "square roots"}
_PLACES_OF_LOSS = 5


def describe(check: SwapCheck) -> str:
    """The page of text that ``print`` shows of a check."""
    parts = [
        "CONFIDENTIAL: computed from the data. Do not publish it. If you choose rate or variables by it, the guarantee "
        "does not hold.",
        _first_to_hear(check),
        _guarantee(check),
        _strata(check),
        _movement(check),
        _undoing(check),
        _telling(check),
        revealing_text(check.revealing, check.plan.records),
        _rules(check.rules, bool(check.plan.rounds)) if check.rules else "",
        _uniques_on(check.uniques_on) if check.uniques_on else "",
        _published(check.plan),
        *(_expected(table, check, number) for number, table in enumerate(check.tables)),
        *(f"{one.words}: too many cells to forecast." for one in check.too_large),
        *(fill(f"{one.words}: {_NOT_FORECAST}") for one in check.not_forecast),
        _what_if(check.what_if, bool(check.plan.rounds)) if check.what_if else "",
        _forecast(check),
        _findings(check),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_to_hear(check: SwapCheck) -> str:
    uniques = check.uniques
    share = 100 * uniques.on_held / check.records
    lines = [
        f"Not protected: held and match values are published exactly as they are. "
        f"{uniques.on_held:,} of {check.records:,} {check.plan.records} ({share:.1f}%) are unique on them."
    ]
    if uniques.with_linked is not None:
        share = 100 * uniques.with_linked / check.records
        lines.append(f"Counting linked rows as part of the record, {uniques.with_linked:,} ({share:.1f}%) are unique.")
    return fill(" ".join(lines))


def _guarantee(check: SwapCheck) -> str:
    b, rate, strata = check.largest, check.plan.rate, check.strata
    by_theorem = "rates by rule" if rate is None else f"Theorem 3.2.4: rate {rate}"
    rows = [("epsilon", f"{display(check.epsilon)} ({by_theorem}, largest stratum b = {b:,})")]
    if b:
        tight = strata.largest_changeable
        if rate is not None:
            rows.append(
                (
                    "with tighter b",
                    f"{display(theorem.epsilon(tight, rate))} (b = {tight:,}; not what the release states)",
                )
            )
        rows.append(
            (
                "smallest epsilon",
                f"{display(theorem.smallest_epsilon(b))} at {'one rate of' if rate is None else 'rate'} "
                f"{_inward(theorem.best_rate(b))} with these variables",
            )
        )
        if rate is not None:
            rows.append(
                (
                    "worst universe",
                    f"with this b: no epsilon below {display_down(theorem.lower_bound(b, rate))} holds "
                    "in it; the bound above is "
                    f"within {display(theorem.gap(b, rate), 4)} of the best possible there, given at "
                    "least five values on each side (Theorems B.4.1, B.4.2)",
                )
            )
    if check.plan.rounds:
        rows.append(("rounds", _rounds(check)))
    rows.append(("nearest", _nearest(check.specification)))
    for number, counted in enumerate(check.margins.counted, 1):
        rows.append((f"invariant {number}", f"{counted.margin}: {counted.margin.cells:,} cells, published exactly"))
    if check.linked_rows:
        rows.append(
            (
                "and jointly",
                f"each {check.plan.unit} keeps all its rows in {listed(check.linked_rows)} and its held values",
            )
        )
    return "Guarantee\n" + named_rows(rows)


def _rounds(check: SwapCheck) -> str:
    later = "; then ".join(one.words for one in check.plan.rounds)
    return (
        f"{len(check.plan.rounds) + 1}; epsilon and invariants are those of the first. Later rounds swap {later}; they "
        "work on what the round before gave alone, and add nothing to epsilon"
    )


def _nearest(specification: Specification) -> str:
    distance = specification.nearest
    if distance is None or distance == inf:
        return "no other file has the same invariants, so nothing is protected"
    return (
        f"two files with the same invariants differ in at least {distance} records; between them the log likelihood "
        f"ratio is at most {display(specification.budget_at(distance))}"
    )


def _strata(check: SwapCheck) -> str:
    strata = check.strata
    fixed = ~strata.changeable
    rows = [
        (
            one.size,
            f"{_count(one.strata, 'stratum', 'strata')}, {one.records:,} records, of which "
            f"{100 * one.moved_share:.2f}% move and {100 * one.changed_share:.2f}% end with other swap values",
        )
        for one in check.movement.by_size
    ]
    rows.append(
        (
            "nothing can change",
            f"{_count(int(np.count_nonzero(fixed)), 'stratum', 'strata')}, {int(strata.sizes[fixed].sum()):,} records "
            "(one held or one swap value)",
        )
    )
    rows.append(("of one record", f"{_count(strata.singletons, 'stratum', 'strata')}, never swapped"))
    merged = ""
    if (rule := check.plan.coarsen) is not None:
        merged = "\n" + fill(
            f"{check.fine_strata:,} groups of records that agree on {listed(check.plan.match)} became "
            f"{len(strata.sizes):,} strata: {rule.words}. The counts of '{rule.column}' by {listed(check.plan.swap)} "
            "are not kept any more, those of the merged values are."
        )
    return f"Strata: {len(strata.sizes):,}, by number of records\n" + named_rows(rows) + merged


def _movement(check: SwapCheck) -> str:
    movement, rounds = check.movement, len(check.plan.rounds) + 1
    some, last = (f" in at least one of {rounds} rounds", " after the last round") if rounds > 1 else ("", "")
    return fill(
        f"Records that move{some}: {100 * movement.expected_share:.2f}% expected (in strata of two or more between "
        f"{100 * movement.smallest:.2f}% and {100 * movement.largest:.2f}%); "
        f"{100 * movement.expected_changed_share:.2f}% expected to end with other swap values{last}."
    ) + "".join(f"\n{_fixed(one)}" for one in check.unchangeable if one.places)


def _fixed(found: Unchangeable) -> str:
    shown = [
        f"{'(null)' if value is None else value} {fixed:,} of {many:,}"
        for value, many, fixed in found.places[:_PLACES_THAT_STAY]
    ]
    more = len(found.places) - len(shown)
    return fill(
        f"Records that can never change, by '{found.variable}': {'; '.join(shown)}"
        + (f"; and {more:,} values more (--json has all)." if more else ".")
    )


def _telling(check: SwapCheck) -> str:
    telling = check.telling
    if not telling.told:
        return ""
    looked = "all" if telling.rows >= check.records else f"a sample of {telling.rows:,} of"
    head = (
        "What held columns tell about swap variables, of the records that the match variables alone do not tell "
        f"({_count(telling.columns, 'column', 'columns')}, {_count(telling.pairs, 'pair', 'pairs')} and a decision "
        f"tree of all were tried on {looked} {check.records:,} {check.plan.records}; combinations of three and more "
        "only by the tree, and knowledge from elsewhere not at all)"
    )
    rows = [
        (f"{100 * one.share:.1f}%", f"of '{one.variable}' by {_columns(one.columns)} of table '{one.table}'")
        for one in telling.worth_telling[:_SHOWN_TOLD]
    ]
    return fill(head) + "\n" + (named_rows(rows) if rows else "  nothing beyond chance")


def _undoing(check: SwapCheck) -> str:
    """How many changed records could be put back, and what was looked for."""
    undoing, worst, most = check.undoing, check.undoing.worst, 100 * float(check.plan.most_recovered)
    looked = (
        f"Looked at: {_count(undoing.columns, 'column', 'columns')}, up to {LOOKED_COLUMNS} of a table in pairs, and "
        "what the best of them grow to. Not looked at: all combinations, and what somebody knows from elsewhere."
    )
    if worst is None:
        text = (
            "Records that could be put back: none were found by way of rows that agree on held columns and lived in "
            "one place, as a household's do. That does not show that nobody can."
        )
        return fill(f"{text} {looked}") + _together(check)
    text = (
        f"Records that could be put back: about {worst.recovered * worst.changed:,.0f} of {worst.changed:,.0f} that "
        f"change ({_part(worst.recovered)}), {_part(worst.precision)} of what is put back rightly, by whoever knows "
        f"that rows of table '{worst.table}' that agree on {listed(worst.columns)} mostly share "
        f"{listed(worst.variables)} (groups of {worst.rows:.1f} rows in the mean). The plan accepts {most:.3g}%."
    )
    rows = [(one.words, f"{_part(one.left)} would remain") for one in undoing.remedies]
    return fill(f"{text} {looked}") + (f"\n{named_rows(rows)}" if rows else "") + _together(check)


def _part(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{100 * share:.0f}%"


def _together(check: SwapCheck) -> str:
    found = check.together
    if found is None:
        return ""
    return "\n" + fill(
        f"Together with {_count(found.releases, 'earlier swap', 'earlier swaps')} of the ledger: "
        f"{_part(found.linked_share)} of the records are unique on what all of them hold, so that their rows are "
        "found again in each. Where two releases differ, one of the two shows the true place. About "
        f"{_part(found.recovered)} of the records that this release would change could be put back."
    )


def _columns(names: Sequence[str]) -> str:
    return listed(names) if len(names) < 3 else "all held columns (decision tree)"


def _rules(effects: RuleEffects, several_rounds: bool) -> str:
    rows = [
        ["rate", "records", "unique", "move", "end with other values", "epsilon by itself", "rule"],
        *(
            [
                one.rate,
                f"{one.records:,}",
                f"{one.unique:,}",
                _percent(one.moved_share),
                "not computed" if one.changed_share is None else _percent(one.changed_share),
                display(one.epsilon),
                one.rule,
            ]
            for one in effects.rules
        ),
    ]
    return (
        f"Rates by rule (unique: on match and held values{'; the first round alone' if several_rounds else ''})\n"
        + columns(rows)
        + "\n"
        + fill(
            f"Of the {effects.unique:,} unique records {_percent(effects.unique_moved_share)} are expected to move. At "
            f"one rate of {effects.last_rate} for all, {_percent(effects.unique_moved_share_at_last_rate)} of them "
            f"would, and {_percent(effects.moved_share_at_last_rate)} of all records, with epsilon "
            f"{display(effects.epsilon_at_last_rate)}. Epsilon is the largest of those by rule: raising the rate of "
            "some records does not lower it while others keep a low rate."
        )
        + _nobody(effects.values_nobody_has)
    )


def _nobody(values: Sequence[tuple[str, str]]) -> str:
    """A warning about values that rules name and no row has."""
    if not values:
        return ""
    named = ", ".join(f"'{value}' of '{column}'" for column, value in values[:_SHOWN_CELLS])
    more = f" and {len(values) - _SHOWN_CELLS:,} more" if len(values) > _SHOWN_CELLS else ""
    return "\n" + fill(
        f"WARNING: rules name values that no row of the data has: {named}{more}. For these they select nobody. Correct "
        "them in the plan if they are misspelt."
    )


def _published(plan: SwapPlan) -> str:
    """What ``publish`` gives where it could be meant otherwise: several tables of one column each."""
    tables = plan.published_tables
    if len(tables) < 2 or not all(one.of_records and len(one.by) == 1 for one in tables):
        return ""
    names = [one.by[0] for one in tables]
    return fill(
        f"publish has {len(tables)} tables, each by one column: {', '.join(names)}. For one table by all of them write "
        f"publish = [{json.dumps(names, ensure_ascii=False)}]."
    )


def _uniques_on(found: Sequence[UniqueRows]) -> str:
    rows = [["keys", "of", "unique", "records with one", "expected to stay in place"]]
    rows += [
        [
            ", ".join(one.keys.by),
            f"{one.rows:,} {one.keys.linked or 'records'}",
            f"{one.unique:,}",
            f"{one.records:,}",
            "not computed"
            if one.in_place is None
            else f"{one.in_place:,.1f} ({_percent(one.in_place / one.unique)})"
            if one.unique
            else "0",
        ]
        for one in found
    ]
    return (
        "Uniques on the keys asked for, at the rates of this plan\n"
        + columns(rows)
        + "\n"
        + fill(
            "Unique is what no other of the whole file equals in all keys; it stays in place if its record keeps all "
            "its swap values, because it is not selected or because the values that it receives are the same. Who "
            "stays is not published."
        )
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _expected(table: ExpectedTable, check: SwapCheck, number: int) -> str:
    head, what = table.asked.words, "count" if table.asked.label == "count" else "value"
    if table.is_invariant:
        return f"{head}: kept exactly."
    rows = [
        (
            " / ".join("(null)" if value is None else value for value in label),
            f"{f'{true:,.9g}' if table.asked.adds_up else f'{true:,}':>12} {mean:>14,.1f} {sd:>10,.1f}",
        )
        for label, true, mean, sd in zip(
            table.labels[:_SHOWN_CELLS], table.true, table.mean, np.sqrt(table.variance), strict=False
        )
    ]
    text = f"{head}: true {what}, expected {what} after the swap, standard deviation\n" + named_rows(rows)
    if len(table.labels) > _SHOWN_CELLS:
        text += f"\n  ... and {len(table.labels) - _SHOWN_CELLS:,} cells more (--json has all)"
    text += (
        f"\n  MAPE of the expected table {table.mape_of_expectation:.4f} (a lower bound on the expected MAPE); "
        f"expected MAPE {table.expected_mape:.4f} (normal approximation)"
    )
    text += "\n" + loss_text(check.losses[number])
    if check.rules is None:
        return text
    at_last = check.mape_at_last_rate[number]
    return f"{text}\n  At one rate of {check.rules.last_rate} for all it would be {at_last:.4f}"


def _what_if(entries: Sequence[WhatIf], several_rounds: bool) -> str:
    rates = [rate for rate, _ in entries[0].epsilons]
    rows = [
        ["match", "swap", "b", "tighter b", *(f"eps at {rate}" for rate in rates)],
        *(
            [
                " x ".join(entry.match) or "(none)",
                " x ".join(entry.swap),
                f"{entry.largest:,}",
                f"{entry.largest_changeable:,}",
                *(display(value) for _, value in entry.epsilons),
            ]
            for entry in entries
        ),
    ]
    return (
        f"What if (all other columns held{'; one round alone' if several_rounds else ''})\n"
        + columns(rows)
        + "\n"
        + revealed_by(entries)
        + "\n"
        + fill(
            "Do not choose among these by looking at this file: a choice made on this data voids the guarantee. A "
            "smaller epsilon from finer match variables is not better privacy: more is kept exactly, and epsilon says "
            "nothing about that. Rows with different variables are not comparable."
        )
    )


def _forecast(check: SwapCheck) -> str:
    cost = check.forecast
    return (
        f"Forecast of the release: about {cost.seconds:.1f} s, {cost.memory_bytes / 1e9:.1f} GB of memory, "
        f"about {cost.disk_bytes / 1e6:,.1f} MB of disk."
    )


def _findings(check: SwapCheck) -> str:
    lines = findings_and_stops(check.specification, check.open_stops)
    if check.open_stops:
        lines.append("A release of this plan would be refused because of what the lines with STOP say.")
    else:
        lines.append("No stops: none of the reasons that are looked for (stirred docs plans lists them) was found.")
    return "\n".join([*lines, *code_line(check.code)])


def _inward(rate: float) -> str:
    """A rate with six significant digits, rounded towards 1/2 so that it still reaches its epsilon."""
    distance = Decimal(repr(min(rate, 1 - rate)))
    digits = distance.quantize(Decimal(1).scaleb(distance.adjusted() - 5), rounding=ROUND_CEILING)
    return f"{digits if rate < 0.5 else 1 - digits:f}"


def _count(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def loss_text(found: Sequence[LossBy]) -> str:
    """The expected information loss of a table as a few lines."""
    whole = found[0].fields(0)
    rows = [
        (
            _NAMES[name],
            f"mean {_number(whole[f'{name}_mean'])}, median {_number(whole[f'{name}_50%'])}, "
            f"90% of cells up to {_number(whole[f'{name}_90%'])}, largest {_number(whole[f'{name}_100%'])}",
        )
        for name in DISTANCES
        if whole[f"{name}_mean"] is not None
    ]
    if whole["false_zeros"] is None:
        rows.append(("zeros", "not forecast"))
    else:
        rows.append(("false zeros", f"{_number(whole['false_zeros'])} of {whole['cells']:,.0f} cells"))
        inside = f"with {_number(whole['in_false_nonzeros'])} in them together"
        rows.append(("false non-zeros", f"{_number(whole['false_nonzeros'])} cells that are zero now, {inside}"))
    head = fill(
        "Expected information loss: distances between true and released cells, over cells that are not zero now. All "
        "are approximations, and quantiles are of what is expected of each cell. The mean relative distance is an "
        "expected MAPE that also holds for cells that seldom change.",
        "  ",
    )
    return "\n".join([head, named_rows(rows), *(fill(_places(one), "  ") for one in found[1:])])


def _places(found: LossBy) -> str:
    means = found.measures["relative_mean"]
    known = np.flatnonzero(~np.isnan(means))
    worst = known[np.argsort(-means[known], kind="stable")][:_PLACES_OF_LOSS]
    shown = [
        f"{'(null)' if found.values[row] is None else found.values[row]} {_number(float(means[row]))} "
        f"({_count(int(found.measures['cells'][row]), 'cell', 'cells')})"
        for row in worst
    ]
    more = len(known) - len(shown)
    return f"Largest mean relative distance by '{found.variable}': {'; '.join(shown)}" + (
        f"; and {more:,} {'value' if more == 1 else 'values'} more (--json has all)." if more else "."
    )


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    if 0 < abs(value) < 0.0005:
        return "below 0.0005"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def revealing_text(found: Revealing, records: str) -> str:
    """What the published counts alone reveal."""
    counts = found.counts
    rows = [
        (
            "determined",
            f"{_share(counts.determined_records, counts.records)} {records}: those in strata with one held or one swap "
            "value. Only one table has these counts, so the release shows these records as they are, at any rate",
        ),
        (
            "of these",
            f"{counts.singletons:,} strata of one record; {counts.duplicates:,} strata of two or more records that are "
            "all alike",
        ),
        (
            "pinned",
            f"{_share(counts.pinned_records, counts.records)} must lie in a certain combination of held and swap "
            "values (the sum of the lower Frechet bounds)",
        ),
        (
            "bounds",
            f"the count of a held and a swap value of a stratum ({counts.cells:,} pairs) is known to within "
            f"{counts.mean_width:.2f} on average; by width of the bounds: "
            + ", ".join(
                f"{width}: {many:,}" for width, many in zip(WIDTHS, counts.widths, strict=True) if many or width == "0"
            ),
        ),
        (
            "guessed",
            f"{_share(counts.guessed, counts.records)} by naming the commonest swap values of each stratum; the chance "
            "to be right is at least " + ", ".join(f"{percent}% for {many:,}" for percent, many in counts.told),
        ),
        (
            "alone",
            f"{_share(found.levels[-1].alone, counts.records)} are the only one with their match and swap values: a "
            "published count of one shows such a record where it is",
        ),
    ]
    text = (
        fill(
            "What the published counts alone reveal (anyone can compute it from a release; it is the same at every "
            "rate and no part of epsilon)"
        )
        + "\n"
        + named_rows(rows)
        + "\n"
        + _few(found)
    )
    return text + (f"\n{_beliefs(found.beliefs)}" if found.beliefs is not None and found.beliefs.laws else "")


def _few(found: Revealing) -> str:
    numbers = range(1, len(found.levels[0].cells) + 1)
    rows = [["published counts of", *map(str, numbers), "more"]]
    rows += [[one.level, *(f"{many:,}" for many in one.cells), f"{one.more:,}"] for one in found.levels]
    return columns(rows, numbers_right=True)


def _beliefs(found: Beliefs) -> str:
    by_law = {one.law: one for one in found.laws}
    chance, even = by_law["hypergeometric"], by_law["uniform"]
    text = (
        f"An attacker who knows these counts and nothing else (in {found.strata:,} strata, those of records at equal "
        "distances): if every assignment of swap values to records is equally likely (hypergeometric law), "
        f"{100 * chance.guessed_share:.1f}% of swap values are expected to be guessed rightly, and "
        f"{100 * chance.whole_share:.2f}% of records to share all held values with others who all have the same swap "
        f"values; if every table is equally likely (uniform law), {100 * even.guessed_share:.1f}% and "
        f"{100 * even.whole_share:.2f}%."
    )
    if found.drawn:
        agree = f"of {found.disagreeing:,} do not agree: their numbers are rough" if found.disagreeing else "agree"
        text += (
            f" The tables of the uniform law were listed in {found.listed:,} strata and drawn by Markov chains in "
            f"{found.drawn:,}, where the chains {agree}."
        )
    if found.too_large:
        text += f" {found.too_large:,} strata are too large for this and left out."
    return fill(text)


def revealed_by(entries: Sequence[WhatIf]) -> str:
    """What each choice of variables reveals and changes."""
    rates = [rate for rate, _ in entries[0].epsilons]
    with_errors = any(error is not None for entry in entries for _, error in entry.errors)
    rows = [
        ["match", "swap", "determined", "unique", "guessed", *(f"changed at {rate}" for rate in rates)]
        + ([f"error at {rate}" for rate in rates] if with_errors else [])
    ]
    for entry in entries:
        shares = [entry.determined_share, entry.unique_share, entry.guessed_share]
        shares += [share for _, share in entry.changed_shares]
        row = [" x ".join(entry.match) or "(none)", " x ".join(entry.swap), *(f"{100 * one:.1f}%" for one in shares)]
        if with_errors:
            row += ["-" if error is None else f"{error:.4f}" for _, error in entry.errors]
        rows.append(row)
    return (
        columns(rows)
        + "\n"
        + fill(
            "Shares of records: determined by the published counts at any rate; unique on match and held values; swap "
            "values guessed rightly from the published counts alone; expected to end with other swap values."
            + (" Error is the expected MAPE, the mean over the tables asked for." if with_errors else "")
        )
    )


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f}%)"
