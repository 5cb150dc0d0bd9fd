"""What a swap's check and release say to people, in plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from math import inf

import numpy as np

from stirred.errors import listed
from stirred.releases.documents import ReleasedTable
from stirred.semantics.shown import columns
from stirred.spec import Specification
from stirred.spec.exact import display, display_down
from stirred.swap import guarantee
from stirred.swap.checking import SwapCheck, WhatIf
from stirred.swap.expectation import ExpectedTable
from stirred.swap.plan import SwapPlan

_WIDTH = 100
_SHOWN_CELLS = 40


def describe(check: SwapCheck) -> str:
    """A check as a page of text."""
    parts = [
        "CONFIDENTIAL: computed from the data themselves. Do not publish, and do not choose by it "
        "and claim the guarantee.",
        _first_to_hear(check),
        _guarantee(check),
        _strata(check),
        _movement(check),
        *(_expected(table) for table in check.tables),
        *(f"Table by {listed(by)}: too many cells to forecast." for by in check.too_large),
        _what_if(check.what_if) if check.what_if else "",
        _forecast(check),
        _findings(check),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_to_hear(check: SwapCheck) -> str:
    uniques = check.uniques
    share = 100 * uniques.on_held / check.records
    lines = [
        f"What swapping does not protect: held and match values are published exactly as they are. "
        f"{uniques.on_held:,} of {check.records:,} {check.plan.records} ({share:.1f}%) are unique on them."
    ]
    if uniques.with_linked is not None:
        share = 100 * uniques.with_linked / check.records
        lines.append(f"Counting linked rows as part of the record, {uniques.with_linked:,} ({share:.1f}%) are unique.")
    return _fill(" ".join(lines))


def _guarantee(check: SwapCheck) -> str:
    b, rate, strata = check.largest, check.plan.rate, check.strata
    rows = [("epsilon", f"{display(check.epsilon)} (Theorem 3.2.4: rate {rate}, largest stratum b = {b:,})")]
    if b:
        tight = strata.largest_changeable
        rows.append(
            (
                "with tighter b",
                f"{display(guarantee.epsilon(tight, rate))} (b = {tight:,}; not what the release states)",
            )
        )
        rows.append(
            (
                "smallest epsilon",
                f"{display(guarantee.smallest_epsilon(b))} at rate {_inward(guarantee.best_rate(b))} "
                "with these variables",
            )
        )
        if check.wanted_epsilon is not None:
            rates = check.rates_for_wanted()
            said = (
                f"any rate from {_inward(rates[0])} to {_inward(rates[1])}"
                if rates
                else "out of reach with these variables"
            )
            rows.append((f"epsilon {check.wanted_epsilon:g}", said))
        rows.append(
            (
                "worst universe",
                f"with this b: no epsilon below {display_down(guarantee.lower_bound(b, rate))} holds "
                "in it; the bound above is "
                f"within {display(guarantee.gap(b, rate), 4)} of the best possible there, given at "
                "least five values on each side (Theorems B.4.1, B.4.2)",
            )
        )
    rows.append(("nearest", _nearest(check.specification)))
    for number, counted in enumerate(check.margins.counted, 1):
        rows.append((f"invariant {number}", f"{counted.margin.words()}: {counted.cells:,} cells, published exactly"))
    if check.linked_rows:
        rows.append(
            (
                "and jointly",
                f"each {check.plan.unit} keeps all its rows in {listed(check.linked_rows)} and its held values",
            )
        )
    return "Guarantee\n" + _rows(rows)


def _nearest(specification: Specification) -> str:
    distance = specification.nearest
    if distance is None or distance == inf:
        return "no other file shares the invariants: nothing is protected"
    return (
        f"two files that share the invariants differ in at least {distance} records; between them the log likelihood "
        f"ratio is at most {display(specification.budget_at(distance))}"
    )


def _strata(check: SwapCheck) -> str:
    strata = check.strata
    fixed = ~strata.changeable
    rows = [
        (size, f"{_many(many, 'stratum', 'strata')}, {held:,} records") for size, many, held in check.size_histogram()
    ]
    rows.append(
        (
            "nothing can change",
            f"{_many(int(np.count_nonzero(fixed)), 'stratum', 'strata')}, {int(strata.sizes[fixed].sum()):,} records "
            "(one held or one swap value)",
        )
    )
    rows.append(("of one record", f"{_many(strata.singletons, 'stratum', 'strata')}: never swapped"))
    return f"Strata: {len(strata.sizes):,}, by number of records\n" + _rows(rows)


def _movement(check: SwapCheck) -> str:
    movement = check.movement
    return _fill(
        f"Records that move: {100 * movement.expected_share:.2f}% expected (in strata of two or more between "
        f"{100 * movement.smallest:.2f}% and {100 * movement.largest:.2f}%); "
        f"{100 * movement.expected_changed_share:.2f}% "
        "expected to end with other swap values."
    )


def _expected(table: ExpectedTable) -> str:
    head = f"Table by {listed(table.by)}"
    if table.is_invariant:
        return f"{head}: kept exactly."
    rows = [
        (
            " / ".join("(null)" if value is None else value for value in label),
            f"{true:>12,} {mean:>14,.1f} {sd:>10,.1f}",
        )
        for label, true, mean, sd in zip(
            table.labels[:_SHOWN_CELLS], table.true, table.mean, np.sqrt(table.variance), strict=False
        )
    ]
    text = f"{head}: true count, expected count after the swap, standard deviation\n" + _rows(rows)
    if len(table.labels) > _SHOWN_CELLS:
        text += f"\n  ... and {len(table.labels) - _SHOWN_CELLS:,} cells more (--json has all)"
    return text + (
        f"\n  MAPE of the expected table {table.mape_of_expectation:.4f} (a lower bound on the expected MAPE); "
        f"expected MAPE {table.expected_mape:.4f} (normal approximation)"
    )


def _what_if(entries: Sequence[WhatIf]) -> str:
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
        "What if (all other columns held)\n"
        + columns(rows)
        + "\n"
        + _fill(
            "Choosing among these by this file is a choice made on this data: it voids the guarantee "
            "unless the choice is "
            "made on other grounds. A smaller epsilon from finer match variables is not better "
            "privacy: more is invariant, "
            "and epsilon says nothing about that; rows with different variables are not comparable."
        )
    )


def _forecast(check: SwapCheck) -> str:
    cost = check.forecast
    return (
        f"Forecast of the release: about {cost.seconds:.1f} s, {cost.memory_bytes / 1e9:.1f} GB of memory, "
        f"about {cost.disk_bytes / 1e6:,.1f} MB of disk."
    )


def _findings(check: SwapCheck) -> str:
    lines = [_fill(f"FINDING {finding.id}: {finding.words}") for finding in check.specification.findings]
    lines += [_fill(f"STOP {stop.kind}: {stop}") for stop in check.blocking]
    if check.blocking:
        lines.append("A release of this plan stops here.")
    else:
        lines.append(
            "No held column alone, or with the match, gives the swap away; several together were not examined."
        )
    return "\n".join(lines)


def readme(specification: Specification, plan: SwapPlan, tables: Sequence[ReleasedTable]) -> str:
    """``README.txt`` of a release."""
    epsilon = display(specification.budget.number)
    files = "\n".join(f"  {table.file}: {table.rows:,} rows, {table.order}" for table in tables)
    findings = "\n".join(_fill(f"- {finding.words}") for finding in specification.findings)
    marks = "".join(f"*** {mark} ***\n\n" for mark in specification.marks)
    return (
        f"{marks}A release of {plan.records} by the Permutation Swapping Algorithm\n"
        + "=" * 70
        + "\n\n"
        + _fill(
            "Within groups of records that agree on "
            f"{listed(plan.match) if plan.match else 'nothing (the whole file)'}, "
            f"each {plan.unit} was selected with probability {plan.rate} and the selected exchanged their values of "
            f"{listed(plan.swap)} at random. All other values are as they stood in the file."
        )
        + f"\n\nFiles\n{files}\n  data_dictionary.json, specification.json, certificate.json, manifest.json\n\n"
        + "The guarantee, in its five parts\n"
        + "\n".join(
            _fill(f"{name}: {words}", "  ")
            for name, words in [
                ("1 domain", str(specification.domain)),
                ("2 multiverse", str(specification.multiverse)),
                ("3 input premetric", str(specification.input_premetric)),
                ("4 output premetric", str(specification.output_premetric)),
                (
                    "5 budget",
                    f"epsilon = {epsilon} per record of distance. {specification.budget.conversion}.",
                ),
            ]
        )
        + "\n\n"
        + _fill(
            "How to read it: no other file has the counts named in part 2, so this release is the "
            "file itself. The number "
            "above is empty: nothing is protected."
            if specification.nearest == inf
            else "How to read it: take any two files that agree on the counts named in part 2 and differ in d records. "
            f"Whatever is seen in this release is at most exp(d x {epsilon}) times as likely under one as under the "
            "other. d is at least 2. Another draw from the same file would add its own epsilon. The "
            "number says nothing "
            "about what the kept counts themselves reveal, and is not comparable with an epsilon that goes with other "
            "invariants."
        )
        + "\n\n"
        + (f"Doubts that belong to the guarantee\n{findings}\n\n" if findings else "")
        + "Check it yourself\n"
        "  stirred verify FOLDER            the manifest, the schema, the invariants and epsilon, "
        "from the released files\n"
        "  stirred tabulate FOLDER --by ... further tables; they cost nothing\n\n"
        + _fill(
            "Row order and ids are new and mean nothing. Which records moved, and how many, is not "
            "published: that is part of "
            "the protection."
        )
        + "\n"
    )


def confidential_note() -> str:
    """``CONFIDENTIAL.txt`` of the folder with true against released tables."""
    return (
        "CONFIDENTIAL. These files contain true counts.\n\n"
        "They tell how far this one run is from the truth. Running again and keeping the run that "
        "looks best, or changing\n"
        "the plan after looking here, makes the release depend on the data in ways the guarantee "
        "does not cover: it is\n"
        "then void.\n"
    )


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(
        textwrap.fill(
            words,
            _WIDTH,
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (width + 2),
            replace_whitespace=False,
            drop_whitespace=True,
        )
        for name, words in rows
    )


def _inward(rate: float) -> str:
    """A rate with six digits that tell, rounded towards a half: it still reaches the epsilon it was computed for."""
    distance = Decimal(repr(min(rate, 1 - rate)))
    digits = distance.quantize(Decimal(1).scaleb(distance.adjusted() - 5), rounding=ROUND_CEILING)
    return f"{digits if rate < 0.5 else 1 - digits:f}"


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _fill(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + ("  " if indent else ""))
