"""Writes what a swapped release says in words: README.txt, notes for analysts and beside the confidential comparison.

Keep in mind: everything follows from the plan and the names of columns; no table is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from shlex import quote

from stirred.errors import listed
from stirred.releases.folder.documents import (
    ReleasedTable,
    context_section,
    files_section,
    fill,
    findings_section,
    guarantee_section,
    origin_section,
    titled,
)
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.spec import Specification, facts
from stirred.spec.exact import display
from stirred.swap.checking.putting_back import PUT_BACK, PutBack
from stirred.swap.data.dataset import FLAT, flat_labels
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import table_names
from stirred.tables.labelled_files import TITLES
from stirred.tables.writing import EXTENSIONS

_NAMED = 12
"""Held columns that are named one by one."""

CONFIDENTIAL_NOTE = """\
CONFIDENTIAL. These files contain true counts.

They show how far the tables of this run are from the truth. Do not run again and keep the run that looks best, and do
not change the plan after looking here: the guarantee does not cover such choices, and would be void.
"""


def readme(
    specification: Specification, plan: SwapPlan, tables: Sequence[ReleasedTable], put_back: PutBack | None
) -> str:
    """The text of ``README.txt``; ``put_back`` is None for releases of versions before 0.7, which did not state it."""
    published = [f"tables/{name}.csv" for name in table_names(plan.published_tables)]
    if plan.flat is not None:
        flat = FLAT + EXTENSIONS[tables[0].format]
        lines = [f"{flat}: the rows of {plan.flat.name} beside the columns of their {plan.unit}, as one table"]
        if (labels := flat_labels(tables)) is not None:
            lines.append(f"{labels.file(FLAT)}: the rows of {flat} in a {TITLES[labels.kind]} file with labels")
        published = [*lines, *published]
    parts = [
        titled(f"A release of {plan.records} by the Permutation Swapping Algorithm", specification),
        origin_section(plan),
        fill(
            "Within groups of records that agree on "
            f"{listed(plan.match) if plan.match else 'nothing (the whole file)'}"
            f"{f' ({plan.coarsen.words})' if plan.coarsen else ''}, "
            f"each {plan.unit} was selected with {_probability(plan)} and the selected exchanged their values of "
            f"{listed(plan.swap)} at random.{_later_rounds(plan)} All other values are as they stood in the file."
            + _how_many_change(specification)
        )
        + "\n",
        files_section(tables, published),
        guarantee_section(specification),
        fill(_how_to_read(specification)) + "\n",
        fill(put_back.words(plan)) + "\n" if put_back is not None else "",
        analysts_section(plan, tables),
        findings_section(specification),
        context_section(plan.context),
        "Check it yourself\n"
        "  stirred verify FOLDER              the manifest, the columns, the invariants and epsilon, from these files\n"
        "  stirred tabulate FOLDER --by ...   further tables; they cost no budget\n"
        "  stirred estimate FOLDER --by ...   tables of swapped with held variables, corrected, with intervals\n",
        fill(
            f"{'Row order and ids are new and mean' if plan.id else 'Row order is new and means'} nothing. "
            + (
                "Which records moved, and how many, is not published: that is part of the protection."
                if put_back is None
                else "Which records moved, and how many, is not published; what the files show of it is said above."
            )
        )
        + "\n",
    ]
    return "\n".join(part for part in parts if part)


def analysts_section(plan: SwapPlan, tables: Sequence[ReleasedTable]) -> str:
    """Which tables are exact, which are weakened and which cannot be had; a function of the plan and the columns."""
    held = {table.name: [name for name, role in table.columns if role == "hold"] for table in tables}
    exact, weakened, missing = analysts_words(plan, held)
    lines = [fill(f"Exact, as in the file: {exact}", "  "), fill(f"Weakened: {weakened}", "  ")]
    return (
        "For analysts: which tables are right\n" + "\n".join([*lines, fill(f"Not to be had: {missing}", "  ")]) + "\n"
    )


def analysts_words(plan: SwapPlan, held: Mapping[str, Sequence[str]]) -> tuple[str, str, str]:
    """Which tables are exact, which are weakened and which cannot be had; ``held`` has the held columns of each table,
    that of the records first."""
    main, *others = held.values()
    linked = dict(zip(list(held)[1:], others, strict=True))
    match = [*plan.match]
    merged = f", with '{plan.coarsen.column}' merged as said above" if plan.coarsen else ""
    exact = [f"any table by {listed([*match, *plan.swap])}{merged}"]
    if main:
        exact.append(f"any table by {listed([*match, *main])}")
    exact += [f"any table of {name} by {listed([*match, *main, *names])}" for name, names in linked.items()]
    every = list(dict.fromkeys([*main, *(name for names in linked.values() for name in names)]))
    other = every[0] if every else plan.swap[0]
    return (
        f"{'; '.join(exact)}; and tables by some of these columns.",
        f"every table, difference or model that relates {listed(plan.swap)} to what is held"
        f"{f' ({listed(every)})' if len(every) <= _NAMED else ''}.{_sums_too(plan)} {_weakened(plan)} "
        "Counted as they stand, such tables are biased, and intervals from them are wrong." + _corrected(plan, other),
        "such numbers for groups of so few records, or mixed at such a rate, that the exact tables "
        "say as much; stirred estimate says so and gives the bounds that follow from these.",
    )


def _sums_too(plan: SwapPlan) -> str:
    if all(one.of_records for one in plan.published_tables):
        return ""
    return (
        f" Sums, weighted counts and counts of linked rows by {listed(plan.swap)} are among them, also where they name "
        "no held column: they are exact only if the match variables fix what each record adds."
    )


def _weakened(plan: SwapPlan) -> str:
    again = f" Those by {listed(plan.swapped_again)} are weakened further, by the later rounds." if plan.rounds else ""
    if plan.rate is None:
        return "They are shown smaller than they are, more so for records with higher rates." + again
    return (
        f"In large groups they are shown at about {100 * float(1 - plan.rate):.3g}% of their true size, in small ones "
        f"more or less than that.{again}"
    )


def _corrected(plan: SwapPlan, other: str) -> str:
    """What corrects a weakened table."""
    columns = quote(f"{plan.swap[0]},{other}")
    said = (
        f" How much is known, so it can be corrected: stirred estimate FOLDER --by {columns} gives "
        "counts with intervals, and shares, differences, ratios and odds ratios, from this folder alone (bounds only "
        "where groups are too small for their rates)"
    )
    if plan.rounds or plan.rates:
        return f"{said}. Linear regressions (--regress) are not offered for {_not_regressed(plan)}."
    return f"{said}, and linear regressions (--regress)."


def _not_regressed(plan: SwapPlan) -> str:
    return listed(plan.swapped_again) if plan.rounds else "records that have different rates within a group"


def _probability(plan: SwapPlan) -> str:
    if plan.rate is not None:
        return f"probability {plan.rate}"
    return f"a probability that depends on what is kept as it is (the first that fits: {plan.rate_words}),"


def _later_rounds(plan: SwapPlan) -> str:
    said = [
        f" In round {number} this was repeated with what round {number - 1} had given"
        f"{f', among records that then agreed on {listed(later.match_also)} too' if later.match_also else ''}, with "
        f"probability {later.rate} and {listed(later.swap)} alone."
        for number, later in enumerate(plan.rounds, 2)
    ]
    if said:
        said.append(" The guarantee below is that of the first round: later ones used its result alone.")
    return "".join(said)


def _how_many_change(specification: Specification) -> str:
    stated = specification.fact
    if facts.CHANGED_SHARE not in stated:  # a release of a version before 0.4
        return ""
    changed, fixed = (100 * float(stated[name]) for name in (facts.CHANGED_SHARE, facts.UNCHANGEABLE_SHARE))
    return (
        f" {changed:.3g}% of the records are expected to have other values of these than in the file"
        + (", averaged over all ways of giving each group's values to its records" if facts.RATES in stated else "")
        + f", and {fixed:.3g}% "
        "cannot have: they are alone in their group, or all of the group have the same held or the same swap values. "
        "These shares follow from the counts named in part 2 below; how many records changed in fact is not published."
    )


def _how_to_read(specification: Specification) -> str:
    if specification.nearest == inf:
        return (
            "How to read it: nothing is protected, whatever the number above. No other file has the counts named in "
            "part 2, so this release is the file itself."
        )
    epsilon = display(specification.budget.number)
    return (
        "How to read it: take any two files that agree on the counts named in part 2 and differ in d records. "
        f"Whatever is seen in this release is at most exp(d x {epsilon}) times as likely under one as under the "
        "other. d is at least 2. Another draw from the same file would add its own epsilon. The number says nothing "
        "about what the kept counts themselves reveal, and is not comparable with an epsilon that goes with other "
        "invariants."
    )


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, and what to type."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    held = {name: release.with_role(name, "hold") for name in release.dictionary}
    exact, weakened, missing = analysts_words(plan, held)
    yield AnalystNote("exact", exact)
    yield AnalystNote("corrected", weakened)
    yield AnalystNote("unusable", missing)
    if (changed := release.specification.fact.get(facts.CHANGED_SHARE)) is not None:
        words = (
            f"{100 * float(str(changed)):.3g}% of the records are expected to have other values of what was swapped "
            "than in the file. How wide an interval is depends on the table: stirred estimate prints it with each."
        )
        yield AnalystNote("accuracy", words)
    if (stated := PutBack.from_fields(release.certificate.get(PUT_BACK))) is not None:
        yield AnalystNote("put back", stated.words(plan))
    others = _others(plan, held)
    yield AnalystNote("command", f"stirred tabulate FOLDER --by {quote(','.join([*plan.match, *plan.swap]))}")
    if others:
        yield AnalystNote("command", f"stirred estimate FOLDER --by {quote(f'{plan.swap[0]},{others[0]}')}")


def _others(plan: SwapPlan, held: Mapping[str, Sequence[str]]) -> list[str]:
    """The held columns of the records, which are the first table."""
    return list(next(iter(held.values()), ()))
