"""Stops: reasons in the data for which a release ends, unless the plan allows them by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from stirred.errors.kinds import StoppedByCheck, listed

_SHOWN_REMEDIES = 4


def held_determines_swap(table: str, column: str, swapped: str, with_match: bool) -> StoppedByCheck:
    given = "together with the match variables " if with_match else ""
    return StoppedByCheck(
        f"determines:{column}",
        f"The held column '{column}' of table '{table}' {given}determines the swap variable '{swapped}' in this "
        "file: publishing it unchanged shows where every moved record came from.",
        f"Swap '{column}' too, drop it, or add \"determines:{column}\" to allow.",
    )


def held_tells_swap(
    table: str, columns: Sequence[str], named: str, swapped: str, share: float, most: float
) -> StoppedByCheck:
    if len(columns) < 3:
        what = f"The held column{'s' if len(columns) > 1 else ''} {listed(columns)} of table '{table}'"
    else:
        what = f"The held columns of table '{table}' together"
    verb = "tells" if len(columns) == 1 else "tell"
    return StoppedByCheck(
        f"tells:{named}",
        f"{what} {verb} the swap variable '{swapped}' of {100 * share:.0f}% of the rows that the match variables do "
        "not tell: published unchanged, they show which records moved and where from. The plan accepts at most "
        f"{100 * most:.0f}%.",
        f'Swap, drop or coarsen them, state a larger most_told in the plan, or add "tells:{named}" to allow.',
    )


def undone(
    table: str,
    columns: Sequence[str],
    swapped: Sequence[str],
    *,
    households: bool,
    changed: float,
    recovered: float,
    precision: float,
    most: float,
    changes: Sequence[tuple[str, float]],
) -> StoppedByCheck:
    named = "+".join(columns)
    like = "they look like one household" if households else "they seem to stand for a place"
    left = [f"{words}: {_remains(share)} would remain" for words, share in changes]
    change = f"change the plan ({'; '.join(left)})" if left else "drop columns (stirred check says what each leaves)"
    first = (
        "If these rows are the persons of a household, make the household the record (stirred init --flat-id, or a "
        f"linked table). Or {change}."
        if households
        else f"{change[:1].upper()}{change[1:]}."
    )
    return StoppedByCheck(
        f"undone:{named}",
        f"Rows of table '{table}' that agree on {listed(columns)} mostly share {listed(swapped)}: {like}. Whoever "
        f"knows that can put back about {recovered * changed:,.0f} of {changed:,.0f} changed records "
        f"({100 * recovered:.0f}%), {100 * precision:.0f}% of what is put back rightly. The plan accepts at most "
        f"{100 * most:.3g}%.",
        f'{first} Or state a larger most_recovered in the plan, or add "undone:{named}" to allow.',
    )


def _remains(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{100 * share:.0f}%"


def undone_by_releases(releases: int, *, recovered: float, most: float, changed: float) -> StoppedByCheck:
    return StoppedByCheck(
        "undone-by-releases",
        f"The ledger has {releases:,} earlier swaps of this dataset. Held values link the rows of all of them, and the "
        f"swap value that most of them show is the true one: together they let anyone put back about "
        f"{recovered * changed:,.0f} of {changed:,.0f} records that this release would change "
        f"({100 * recovered:.0f}%). The plan accepts at most {100 * most:.3g}%.",
        "Publish the earlier release again instead of drawing another, hold fewer columns in all of them, state a "
        'larger most_recovered in the plan, or add "undone-by-releases" to allow.',
    )


def nearly_distinct(table: str, column: str, percent: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"distinct:{column}",
        f"The held column '{column}' of table '{table}' takes a different value in {percent}% of the rows: it is "
        "published unchanged and may identify them.",
        f'Drop it, list it as the id if that is what it is, group it, or add "distinct:{column}" to allow.',
    )


def text_changes(table: str, column: str, kind: str, count: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"changes-text:{column}",
        f"The type {kind} that the plan gives column '{column}' of table '{table}' changes how {count:,} of its cells "
        "are written (as 01 becomes 1, and 1.50 becomes 1.5), so the release would differ from the file in more than "
        "the swap.",
        f"Leave '{column}' out of types in [input] to carry its cells as they are. If a table adds it up or takes it "
        f'as a weight, it needs its type: add "changes-text:{column}" to allow.',
    )


def nothing_can_change() -> StoppedByCheck:
    return StoppedByCheck(
        "nothing-can-change",
        "No group of records that agree on the match variables has both two different held values and two different "
        "swap values: no other file has the counts that are published, so the release would be the confidential file.",
        "Match on fewer or coarser variables. This stop cannot be allowed.",
    )


def few_change(share: float, rate: Fraction, rounds: int = 1, *, selected_alone: bool = False) -> StoppedByCheck:
    """``selected_alone``: groups are large enough, and at this rate hardly any has two selected records."""
    selected = f"a rate of {100 * float(rate):.3g}%"
    if rounds > 1:
        selected = f"rates by which {rounds} rounds select {100 * float(rate):.3g}% of them at least once"
    why = (
        "a selected record moves only if another one of those that agree with it on the match variables is selected "
        "too, and with so few selected that is rare in groups of these sizes"
        if selected_alone
        else "most groups of records that agree on the match variables are too small, or have one swap value"
    )
    remedy = "Raise the rate, match" if selected_alone else "Match"
    return StoppedByCheck(
        "few-change",
        f"Only {100 * share:.3g}% of the records are expected to end with other swap values, at {selected}: "
        f"{why}. The release would be nearly the confidential file, whatever its epsilon.",
        f'{remedy} on fewer or coarser variables, or add "few-change" to allow.',
    )


def many_unchangeable(share: float, most: Fraction) -> StoppedByCheck:
    return StoppedByCheck(
        "many-unchangeable",
        f"{100 * share:.3g}% of the records can never change: they are alone in their group of records that agree on "
        "the match variables, or all of the group have the same held or the same swap values. The plan accepts at most "
        f"{100 * float(most):.3g}%.",
        "Match on fewer or coarser variables, state a larger most_unchangeable in the plan, or add "
        '"many-unchangeable" to allow.',
    )


def many_alone(
    alone: int, records: int, columns: Sequence[str], most: Fraction, without: Mapping[str, float]
) -> StoppedByCheck:
    left = [f"without '{name}' {100 * share:.3g}%" for name, share in sorted(without.items(), key=lambda one: one[1])]
    return StoppedByCheck(
        "many-alone",
        f"{alone:,} of {records:,} records ({100 * alone / records:.3g}%) are the only one with their values of "
        f"{listed(columns)}. How many records have which of these values is published exactly, so that each of these "
        "counts shows one record where it is, at any rate of swapping. The plan accepts at most "
        f"{100 * float(most):.3g}%.",
        "Swap coarser places, or match on fewer or coarser variables"
        + (f" ({', '.join(left[:_SHOWN_REMEDIES])} would remain)" if left else "")
        + ', state a larger most_alone in the plan, or add "many-alone" to allow.',
    )
