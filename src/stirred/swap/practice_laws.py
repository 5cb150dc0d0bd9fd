"""How swappers select, move and release the records of one small stratum: exact laws, by enumeration.

Used by :mod:`stirred.swap.practices` and by audits. Some of these are not what this package does; their docstrings say
what they do. Rates may be floats, where speed counts for more than exactness.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from stirred.swap.guarantee import derangements

Record = tuple[str, ...]
"""Held value, swap value and, where there is one, a score that is not released: + or -."""
File = tuple[Record, ...]
"""Sorted, so that slot by slot all files of a universe have the same held values."""
Rates = Sequence[Fraction]
Places = Mapping[int, int] | Sequence[int]
Selection = dict[tuple[int, ...], Fraction]
"""The probability of each set of selected slots."""
Moves = dict[tuple[int, ...], Fraction]
"""The probability of each permutation; slot i receives the swap value of slot order[i]."""
Law = dict[str, Fraction]
State = tuple[tuple[int, ...], int]
"""The value of every slot, and the slots that have moved so far as a bit mask."""


# -- who is selected -----------------------------------------------------------------------------------------


def selected(rates: Rates) -> Selection:
    """Every slot independently, with its rate."""
    slots = range(len(rates))
    return {
        chosen: math.prod((rates[i] if i in chosen else 1 - rates[i] for i in slots), start=Fraction(1))
        for size in range(len(rates) + 1)
        for chosen in itertools.combinations(slots, size)
    }


def reselected(rates: Rates) -> Selection:
    """As this package does: while exactly one is selected, the whole stratum is selected afresh."""
    return _given(selected(rates), lambda chosen: len(chosen) != 1)


def lone_dropped(rates: Rates) -> Selection:
    """A lone record stays where it is."""
    law = selected(rates)
    for i in range(len(rates)):
        law[()] += law.pop((i,))
    return law


def lone_kept(rates: Rates) -> Selection:
    """A lone record stays selected, and the others are selected afresh until one of them is."""
    law = selected(rates)
    for i in range(len(rates)):
        chance = law.pop((i,))
        for chosen, share in _given(selected(rates), _with_others(i)).items():
            law[chosen] += chance * share
    return law


def lone_partnered(rates: Rates) -> Selection:
    """A lone record gets a partner, any other record alike."""
    law = selected(rates)
    for i in range(len(rates)):
        chance = law.pop((i,))
        for j in range(len(rates)):
            if j != i:
                law[min(i, j), max(i, j)] += chance / (len(rates) - 1)
    return law


def fixed_number(size: int, number: int) -> Selection:
    """So many records, no more and no fewer."""
    sets = list(itertools.combinations(range(size), number))
    return {chosen: Fraction(1, len(sets)) for chosen in sets}


# -- how they move -------------------------------------------------------------------------------------------


def deranged(law: Selection) -> Moves:
    """The selected exchange at random so that none of them gets its own value: a uniform derangement."""
    return {
        order: law[moved] / derangements(len(moved)) for order, moved in _permutations(law).items() if law.get(moved)
    }


def paired(rates: Rates) -> Moves:
    """The selected exchange two by two; while their number is odd, all are selected afresh."""
    law = _given(selected(rates), lambda chosen: len(chosen) % 2 == 0)
    orders = {order: moved for order, moved in _permutations(law).items() if all(order[order[i]] == i for i in moved)}
    ways = Counter(orders.values())
    return {order: law[moved] / ways[moved] for order, moved in orders.items()}


def to_other_places(file: File, rates: Rates) -> Moves:
    """The selected exchange so that all of them change places; selections that do not allow it are made afresh."""
    law = selected(rates)
    places = [record[1] for record in file]
    every = _permutations(law).items()
    orders = {order: moved for order, moved in every if all(places[order[i]] != places[i] for i in moved)}
    ways = Counter(orders.values())
    kept = sum(law[moved] for moved in ways)
    return {order: law[moved] / ways[moved] / kept for order, moved in orders.items()}


def with_nearest(file: File, rate: Fraction) -> Moves:
    """With this probability, one household exchanges with the nearest in another place; places are in a row."""
    still = tuple(range(len(file)))
    found: Moves = {still: 1 - rate}
    for i in still:
        far = {j: abs(ord(file[i][1]) - ord(file[j][1])) for j in still if file[j][1] != file[i][1]}
        nearest = [j for j in far if far[j] == min(far.values())]
        for j in nearest:
            order = tuple({i: j, j: i}.get(slot, slot) for slot in still)
            found[order] = found.get(order, Fraction(0)) + rate / len(still) / len(nearest)
    return found


def in_rounds(values: Sequence[int], rounds: Iterable[tuple[Places, Fraction | Rates]]) -> dict[State, Fraction]:
    """The law of the values of all slots after some rounds, each on what the round before gave.

    A round is where each value lies, and its rate or the rates of the slots: slots whose values lie in one place
    exchange as this package does it, those of each place by themselves.

    >>> in_rounds([7, 8], [({7: 0, 8: 0}, Fraction(1, 2))])[(8, 7), 3]
    Fraction(1, 2)
    """
    law: dict[State, Fraction] = {(tuple(values), 0): Fraction(1)}
    for places, rate in rounds:
        rates = rate if isinstance(rate, Sequence) else [rate] * len(values)
        after: dict[State, Fraction] = {}
        for (held, mask), chance in law.items():
            together: dict[int, list[int]] = {}
            for slot, value in enumerate(held):
                together.setdefault(places[value], []).append(slot)
            for orders in itertools.product(*(_orders(slots, rates) for slots in together.values())):
                new, moved, further = list(held), mask, chance
                for slots, order, share in orders:
                    further *= share
                    for slot, giver in zip(slots, order, strict=True):
                        new[slot] = held[slots[giver]]
                        moved |= (slot != slots[giver]) << slot
                state = tuple(new), moved
                after[state] = after.get(state, Fraction(0)) + further
        law = after
    return law


# -- what is released ----------------------------------------------------------------------------------------


def tables(file: File, moves: Moves) -> Law:
    """The law of the released table; rows are in no order."""
    return _summed((name_of(tuple(sorted(_moved(file, order)))), chance) for order, chance in moves.items())


def with_log(file: File, moves: Moves) -> Law:
    """The law of the released table with a star at each record that moved."""
    marked = {
        order: [(*record, "*" * (order[i] != i)) for i, record in enumerate(_moved(file, order))] for order in moves
    }
    return _summed((name_of(tuple(sorted(marked[order]))), chance) for order, chance in moves.items())


def best_of(draws: int, file: File, moves: Moves) -> Law:
    """The law of the one of several draws in which the fewest records differ from the file."""
    law = tables(file, moves)
    own = Counter(name_of((one,)) for one in file)
    changed = {name: len(file) - (own & Counter(name.split())).total() for name in law}
    found: Law = {}
    for name, chance in law.items():
        as_far = sum(share for other, share in law.items() if changed[other] >= changed[name])
        farther = sum(share for other, share in law.items() if changed[other] > changed[name])
        alike = as_far - farther
        found[name] = (as_far**draws - farther**draws) * chance / alike
    return found


# -- helpers -------------------------------------------------------------------------------------------------


def _given(law: Selection, holds: Callable[[tuple[int, ...]], bool]) -> Selection:
    """The law given that the selection is of this kind."""
    kept = sum(chance for chosen, chance in law.items() if holds(chosen))
    return {chosen: chance / kept for chosen, chance in law.items() if holds(chosen)}


def _orders(slots: Sequence[int], rates: Rates) -> Iterable[tuple[Sequence[int], tuple[int, ...], Fraction]]:
    return ((slots, order, chance) for order, chance in _reselected_moves(tuple(rates[slot] for slot in slots)))


@lru_cache(maxsize=256)
def _reselected_moves(rates: tuple[Fraction, ...]) -> tuple[tuple[tuple[int, ...], Fraction], ...]:
    return tuple(deranged(reselected(rates)).items()) if len(rates) > 1 else (((0,), Fraction(1)),)


def _with_others(slot: int) -> Callable[[tuple[int, ...]], bool]:
    return lambda chosen: slot in chosen and len(chosen) > 1


def _permutations(law: Selection) -> dict[tuple[int, ...], tuple[int, ...]]:
    """All permutations of the slots that a selection speaks of, each with the slots that it moves."""
    slots = range(max(max(chosen, default=0) for chosen in law) + 1)
    return {order: tuple(i for i in slots if order[i] != i) for order in itertools.permutations(slots)}


def _moved(file: File, order: Sequence[int]) -> File:
    """What is released of each slot: its held value with the swap value that it receives."""
    return tuple((record[0], file[order[i]][1]) for i, record in enumerate(file))


def _summed(chances: Iterable[tuple[str, Fraction]]) -> Law:
    law: Law = {}
    for name, chance in chances:
        law[name] = law.get(name, Fraction(0)) + chance
    return law


def name_of(file: File) -> str:
    """The records one after the other."""
    return " ".join("".join(one) for one in file)
