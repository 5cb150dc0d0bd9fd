"""Texts of README.txt of a swapped release, and of the note beside the confidential comparison."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from stirred.errors import listed
from stirred.releases.documents import ReleasedTable
from stirred.releases.texts import files_section, fill, findings_section, guarantee_section, origin_section, titled
from stirred.spec import Specification, facts
from stirred.spec.exact import display
from stirred.swap.flat import FLAT
from stirred.swap.plan import SwapPlan, table_names
from stirred.tables.write import EXTENSIONS

CONFIDENTIAL_NOTE = """\
CONFIDENTIAL. These files contain true counts.

They show how far the tables of this run are from the truth. Do not run again and keep the run that looks best, and do
not change the plan after looking here: the guarantee does not cover such choices, and would be void.
"""


def readme(specification: Specification, plan: SwapPlan, tables: Sequence[ReleasedTable]) -> str:
    """The text of ``README.txt``."""
    published = [f"tables/{name}.csv" for name in table_names(plan.publish)]
    if plan.flat is not None:
        published.insert(0, f"{FLAT}{EXTENSIONS[tables[0].format]}: the rows of {plan.flat.name} beside the columns of "
                         f"their {plan.unit}, as one table")  # fmt: skip
    parts = [
        titled(f"A release of {plan.records} by the Permutation Swapping Algorithm", specification),
        origin_section(plan),
        fill(
            "Within groups of records that agree on "
            f"{listed(plan.match) if plan.match else 'nothing (the whole file)'}"
            f"{f' ({plan.coarsen.words})' if plan.coarsen else ''}, "
            f"each {plan.unit} was selected with {_probability(plan)} and the selected exchanged their values of "
            f"{listed(plan.swap)} at random. All other values are as they stood in the file."
            + _how_many_change(specification)
        )
        + "\n",
        files_section(tables, published),
        guarantee_section(specification),
        fill(_how_to_read(specification)) + "\n",
        findings_section(specification),
        "Check it yourself\n"
        "  stirred verify FOLDER              the manifest, the columns, the invariants and epsilon, from these files\n"
        "  stirred tabulate FOLDER --by ...   further tables; they cost no budget\n",
        fill(
            "Row order and ids are new and mean nothing. Which records moved, and how many, is not published: that is "
            "part of the protection."
        )
        + "\n",
    ]
    return "\n".join(part for part in parts if part)


def _probability(plan: SwapPlan) -> str:
    if plan.rate is not None:
        return f"probability {plan.rate}"
    return f"a probability that depends on what is kept as it is (the first that fits: {plan.rate_words}),"


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
