"""Lint rules about the domain and the multiverse: which datasets there could have been, and which are compared."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

from stirred.spec import facts
from stirred.spec.blocks import Multiverse
from stirred.spec.held import taken_as_known
from stirred.spec.invariant import missing, plural
from stirred.spec.lint_rules import (
    also_before,
    comparison,
    fall,
    joined,
    many,
    number,
    rule,
    short,
    smaller,
)
from stirred.spec.specification import Specification

PROCESSED = re.compile(r"(?<!un-)(?<!not )\b(edit|imput|clean|coded\b|coding\b|dedup|top-?cod|clip|sampl|weight)", re.I)
"""Steps between the answers and the file, as they are called where a guarantee starts."""


# -- the domain ------------------------------------------------------------------------------------------------------


@rule(
    "domain-restricted",
    "domain",
    "The less there is to protect, the smaller is the budget of the same noise. Limits that were read off the data are "
    "themselves a release, and no budget covers it.",
    "section 4.3, first way; section 2.4.2",
)
def domain_restricted(specification: Specification) -> str:
    """The domain names steps that made it smaller before the guarantee starts, such as clipping or top-coding."""
    steps = specification.domain.restricted_by
    return f"The domain was made smaller before the guarantee starts, by: {joined(steps)}." if steps else ""


@rule(
    "late-start",
    "domain",
    "Only the data at the boundary between recording and processing are protected. Coding, editing and imputation "
    "before it can carry one person's answers into several records.",
    "section 2.4.2; section 4.3, first way",
)
def late_start(specification: Specification) -> str:
    """The domain does not say where the guarantee starts, or says that it starts after editing, imputation or another
    step of processing. Domains whose datasets are listed one by one are not asked."""
    domain = specification.domain
    if domain.datasets:
        return ""
    if not domain.starts:
        return "The specification does not say where recording the data ends and the mechanism begins."
    # "The answers, before editing" starts early: what follows the word is still to come.
    if PROCESSED.search(re.split(r"\bbefore\b", domain.starts)[0]):
        return f"The guarantee starts at {domain.starts.rstrip('.')}: what was done until then is not covered."
    return ""


@also_before("late-start")
def later_start(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the start was moved and the budget is smaller."""
    now, then = specification.domain.starts, before.domain.starts
    if not (now and then) or now == then or not smaller(specification, before):
        return ""
    return f"{fall(specification, before)} and the start moves from '{then}' to '{now}'."


# -- the multiverse --------------------------------------------------------------------------------------------------


@rule(
    "nothing-can-change",
    "multiverse",
    "No other dataset agrees with the data on the invariants. These alone reveal the data, and the guarantee, "
    "whatever its budget, says nothing.",
    "sections 2.4.3 and 4.3; Proposition 2.4.13; Theorem 3.2.4 at b = 0",
    voids=True,
)
def nothing_can_change(specification: Specification) -> str:
    """The fact `nothing_can_change` is true, or no universe holds two datasets at a finite distance."""
    if specification.fact.get(facts.NOTHING_CAN_CHANGE) is True:
        if specification.fact.get(facts.MECHANISM) == facts.PERMUTATION_SWAPPING:
            return (
                "No stratum has both two held and two swap values: the release is the file itself, and the invariants "
                "reveal it whole."
            )
        return "The invariants leave one dataset only: anyone who knows them knows the data."
    if nearest(specification) == math.inf:
        return "No universe holds two datasets at a finite distance: there is no counterfactual to compare with."
    return ""


@rule(
    "invariants-many",
    "multiverse",
    "Datasets are compared only if they agree on the invariants. What these reveal, alone or together with the "
    "release, is outside the guarantee.",
    "Proposition 2.4.11; section 2.4.3",
)
def invariants_many(specification: Specification) -> str:
    """The multiverse declares an invariant, even one: a single table can hold millions of counts."""
    held = specification.multiverse.invariants
    if not held:
        return ""
    taken = taken_as_known(specification)
    rest = tuple(one for one in held if one not in taken)
    said = [f"{many(len(rest), 'invariant')} may be published exactly: {joined(rest)}."] if rest else []
    said += [f"Held fixed, taken as known and not protected, though not released: {joined(taken)}."] if taken else []
    return " ".join(said)


@rule(
    "hidden-invariant",
    "multiverse",
    "Where no finite distance leads from one dataset to another, what tells them apart is an invariant, whether it is "
    "declared or not: publishing it costs nothing under the specification.",
    "Proposition A.3.3",
)
def hidden_invariant(specification: Specification) -> str:
    """Distances are infinite between files of different sizes and no declared invariant fixes their size; or a universe
    of listed datasets falls into groups that no finite distance connects."""
    premetric, multiverse = specification.input_premetric, specification.multiverse
    if specification.domain.objects == "distributions":
        return ""  # only what is paired is connected, by design; which distribution it was is no fact about the data
    if hidden := missing(multiverse.invariants, premetric.fixes(), specification.domain.nested):
        counted = plural(premetric.unit) + (f" in a {' or a '.join(premetric.stays_in)}" if premetric.stays_in else "")
        return (
            f"Files with different numbers of {counted} are infinitely far apart, so {hidden[-1]} is held "
            "fixed without being declared."
        )
    if premetric.kind == "records":
        return ""
    for universe in multiverse.universes or (specification.domain.datasets,):
        if premetric.kind == "table" and (parts := _groups(specification, universe)) > 1:
            return (
                f"The universe of {', '.join(universe[:4])}{' ...' if len(universe) > 4 else ''} falls into {parts} "
                "groups that no finite distance connects: which group holds the data may be published."
            )
    return ""


def _groups(specification: Specification, universe: tuple[str, ...]) -> int:
    """The number of connected parts of a universe."""
    part = {name: {name} for name in universe}
    for a, b, _ in specification.input_premetric.distances:
        if a in part and b in part and part[a] is not part[b]:
            part[a] |= part[b]
            for name in part[b]:
                part[name] = part[a]
    return len({id(names) for names in part.values()})


@rule(
    "neighbours-in-empty-universes",
    "multiverse",
    "A guarantee about neighbours alone says nothing in a universe that has none. Distances along paths may.",
    "section 2.4.4; Appendix A.4",
)
def neighbours_in_empty_universes(specification: Specification) -> str:
    """Only neighbours are compared, something is held fixed, and the nearest datasets of a universe are not known to be
    one apart."""
    premetric, multiverse = specification.input_premetric, specification.multiverse
    if not (multiverse.invariants or multiverse.universes) or premetric.kind == "metric" or premetric.sharpened:
        return ""
    apart = nearest(specification)
    if apart == premetric.scale or (premetric.kind == "table" and apart is not None and apart < math.inf):
        return ""
    how = "that any two share a universe is not known" if apart is None else "no universe holds two of them"
    return f"Only datasets that differ in one {premetric.unit} are compared, and {how}: the guarantee may be empty."


def nearest(specification: Specification) -> Fraction | float | None:
    """The smallest positive distance inside a universe: as stated, or read off a table; None if it is not known."""
    if specification.nearest is not None or specification.input_premetric.kind != "table":
        return specification.nearest
    universes = specification.multiverse.universes or (specification.domain.datasets,)
    if not specification.domain.datasets or specification.multiverse.invariants:
        return None
    shared = {pair for universe in universes for pair in itertools.permutations(universe, 2)}
    listed = specification.input_premetric.distances
    within = [d for a, b, d in listed if (a, b) in shared and d > 0]
    return min(within, default=math.inf) * specification.input_premetric.scale


@comparison(
    "more-invariants",
    "multiverse",
    "The more is held fixed, the less is left to protect, and the same noise gets a smaller number. A smaller "
    "epsilon that comes with more invariants is not better privacy: for the households of the 2020 Census, swapping "
    "between the counties of a state at a rate of 50% has an epsilon of 16.42; swapping between the blocks of a block "
    "group, by household size, at 5% has 11.37, moves a tenth as many records and publishes far more.",
    "section 4.3, second way; section 3.4.3 and Table 3.5; Proposition 2.4.13",
)
def more_invariants(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the budget is smaller, and something is held fixed that was not before."""
    if not smaller(specification, before):
        return ""
    said = fall(specification, before)
    if specification.multiverse.universes or before.multiverse.universes:
        if not _divided(specification.multiverse, before.multiverse):
            return ""
        return f"{said}, and the listed universes are parts of the earlier ones: fewer datasets are compared."
    nesting = {*specification.domain.nested, *before.domain.nested}
    now, then = specification.flavor.invariants(), before.flavor.invariants()
    added, dropped = missing(then, now, nesting), missing(now, then, nesting)
    if not added:
        return ""
    said += f", and more is held fixed: {joined(added)}."
    return said + (f" No longer held fixed: {joined(dropped)}." if dropped else "")


def _divided(now: Multiverse, then: Multiverse) -> bool:
    """Whether the universes of ``now`` are parts of those of ``then``, and not the same."""
    if now.universes == then.universes or not now.universes:
        return False
    return not then.universes or all(
        any(set(universe) <= set(other) for other in then.universes) for universe in now.universes
    )


@comparison(
    "finer-strata",
    "multiverse",
    "The epsilon of swapping falls with the size of the largest stratum. In a small stratum a record can "
    "change places with few others, and its counts, which are published, reveal more: a smaller epsilon goes with "
    "weaker protection.",
    "section 4.3, second way; Theorem 3.2.4; section 4.6.1",
)
def finer_strata(specification: Specification, before: Specification) -> str:
    """Against an earlier specification of a swap: the budget is smaller, the match variables differ and the largest
    stratum is smaller."""
    match, old_match = specification.fact.get(facts.MATCH), before.fact.get(facts.MATCH)
    size, old_size = number(specification, facts.LARGEST_STRATUM), number(before, facts.LARGEST_STRATUM)
    if match is None or old_match is None or match == old_match or size is None or old_size is None:
        return ""
    if size >= old_size or not smaller(specification, before):
        return ""
    said = (
        f"Strata by {match or 'nothing'} take the place of strata by {old_match or 'nothing'}: the largest has "
        f"{int(size):,} records and not {int(old_size):,}, and {fall(specification, before)}"
    )
    rate, old_rate = number(specification, facts.RATE), number(before, facts.RATE)
    if rate is not None and old_rate is not None and rate < old_rate:
        said += f", although fewer records move (rate {short(rate)}, before {short(old_rate)})"
    return said + "."
