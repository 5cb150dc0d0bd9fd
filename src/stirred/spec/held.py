"""What a guarantee does not protect: published exactly, or only assumed known or held fixed in the comparison.

Both are the same to the mathematics: datasets that differ in them are not compared, and publishing them would cost
nothing (Propositions 2.4.11 and A.3.3). They are not the same to a reader: a count that was published is known to
everybody, one that only limits which datasets are compared need not be. Keep in mind: what is not known to be published
is in the second class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stirred.spec import facts
from stirred.spec.invariant import Invariant, merged, missing
from stirred.spec.specification import Fact, Specification

PARTED = "; "
"""What stands between invariants in a fact that names some of them."""


@dataclass(frozen=True)
class Held:
    """What is held fixed, by what is known of it; neither class says twice what the other implies."""

    published: tuple[Invariant, ...]
    """Invariants of something that was, or would be, released: its readers know them as they are."""
    assumed: tuple[Invariant, ...]
    """What limits the comparison only: units that stay where they are, the number of records, what a survey takes as
    known, and the invariants of a guarantee of which no release is known."""


def held(specification: Specification) -> Held:
    """The two classes of what is held fixed.

    >>> from stirred.spec.loading import load
    >>> both = held(load("das-2020-overall"))
    >>> [str(one) for one in both.published][:1], [str(one) for one in both.assumed]
    (['the number of persons by state'], ['the number of persons by household'])
    """
    taken, nesting = taken_as_known(specification), specification.domain.nested
    released = bool(specification.covers or facts.MECHANISM in specification.fact)
    invariants = specification.multiverse.invariants
    published = tuple(one for one in invariants if released and one not in taken)
    rest = (*(one for one in invariants if one not in published), *specification.input_premetric.fixes())
    return Held(published, merged(missing(published, rest, nesting), nesting))


def taken_as_known(specification: Specification) -> tuple[Invariant, ...]:
    """The invariants of the multiverse that are stated to be taken as known only."""
    said, invariants = specification.fact.get(facts.HELD_NOT_RELEASED), specification.multiverse.invariants
    if isinstance(said, str):
        return tuple(one for one in invariants if str(one) in said.split(PARTED))
    return invariants if said else ()


def taken_fact(invariants: Iterable[Invariant], taken: Iterable[Invariant]) -> dict[str, Fact]:
    """The fact that some invariants of a multiverse are taken as known: none of them, all, or those named."""
    everything, some = tuple(invariants), set(taken)
    named = [str(one) for one in everything if one in some]
    if not named:
        return {}
    return {facts.HELD_NOT_RELEASED: True if len(named) == len(everything) else PARTED.join(named)}
