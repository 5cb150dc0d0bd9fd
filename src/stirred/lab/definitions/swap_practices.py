"""Swaps of few records by enumeration: the exact law and loss of this package's, and of what other swappers do.

First come the parts of which practices are made: who is selected, how the selected move, what is released. Some are not
what this package does; their docstrings say what they do. Rates may be floats, where speed counts for more than
exactness. Then the swap of this package on one small stratum (Algorithm 3.2.1): a table lists its records as pairs
(held value, swap value), sorted, since the order of rows is never released, and a universe holds all tables with the
same two margins. Everything is exact but the logarithms; the cost is that of all permutations of the records, so at
most seven.

Last come the practices, which the theorem does not cover. An example is a few households of one stratum in all files
that agree on the published counts, and a practice is the law of the released table for each of these files. Held values
are written as numbers, swap values as letters. Beside every practice stands the swap of this package on the same
households: its exact loss is never above the theorem's epsilon.

>>> print(practice("unique-in-county"))
unique-in-county        5.50   4.31   7.32   1.331 times the bound
  0B 0B 1A 1A is released from 0A 0A 1B 1B with probability 7.69e-08, from 0A 0B 1A 1B with 19/108
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from stirred import errors
from stirred.loss.curves.swap_laws import derangements
from stirred.spec import FiniteMechanism, Flavor, Invariant, flavors
from stirred.spec.order.finite_mechanisms import Loss
from stirred.swap.law.theorem import epsilon_of_rates, require_rate

Record = tuple[str, ...]
"""Held value, swap value and, where there is one, a score that is not released: + or -."""
File = tuple[Record, ...]
"""Sorted, so that slot by slot all files of a universe have the same held values."""
Table = tuple[tuple[int, int], ...]
"""Pairs of held and swap value of one stratum, sorted."""
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


@lru_cache(maxsize=256)
def swap_moves(rates: tuple[Fraction, ...]) -> tuple[tuple[tuple[int, ...], Fraction], ...]:
    """As this package does: the permutations of one stratum, with their probabilities."""
    if len(rates) < 2:
        return ((tuple(range(len(rates))), Fraction(1)),)
    return tuple(deranged(reselected(rates)).items())


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
    return ((slots, order, chance) for order, chance in swap_moves(tuple(rates[slot] for slot in slots)))


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


def name_of(file: File | Table) -> str:
    """The records one after the other, held value first."""
    return " ".join("".join(map(str, one)) for one in file)


def swap_flavor() -> Flavor:
    """Households that are replaced, within files that agree on both margins."""
    return flavors.pure("household", invariants=[Invariant("household", by=(name,)) for name in ("held", "swapped")])


# -- the swap of this package on one stratum ------------------------------------------------------------------

MOST_RECORDS = 7


def tables_of(held_totals: Sequence[int], swapped_totals: Sequence[int]) -> tuple[Table, ...]:
    """All tables with these margins: one universe of a swap.

    >>> [name_of(table) for table in tables_of((1, 1), (1, 1))]
    ['00 11', '01 10']
    """
    if sum(held_totals) != sum(swapped_totals):
        raise errors.parameter_out_of_range("swapped_totals", swapped_totals, "as many records as held_totals")
    held = [value for value, count in enumerate(held_totals) for _ in range(count)]
    swapped = [value for value, count in enumerate(swapped_totals) for _ in range(count)]
    _require_few(len(held))
    return tuple(sorted({_sorted(held, order) for order in itertools.permutations(swapped)}))


def released_law(table: Table, rate: Fraction) -> dict[Table, Fraction]:
    """The probability of each table that a swap can release from this one (Algorithm 3.2.1).

    >>> law = released_law(((0, 0), (1, 1)), Fraction(1, 20))
    >>> law[((0, 0), (1, 1))] / law[((0, 1), (1, 0))]
    Fraction(361, 1)
    """
    require_rate(rate)
    _require_few(len(table))
    law: dict[Table, Fraction] = {}
    held = [record[0] for record in table]
    for order, chance in swap_moves((rate,) * len(table)):
        released = _sorted(held, [table[i][1] for i in order])
        law[released] = law.get(released, Fraction(0)) + chance
    return law


def as_mechanism(tables: Sequence[Table], rate: Fraction) -> FiniteMechanism:
    """The swap of these tables as a finite mechanism; datasets and outputs are named by :func:`name_of`."""
    return FiniteMechanism.of(
        {name_of(x): {name_of(z): chance for z, chance in released_law(x, rate).items()} for x in tables}
    )


def exact_loss(tables: Sequence[Table], rate: Fraction) -> Loss:
    """The smallest epsilon of a swap of these tables, under the invariants that it induces and D_Mult.

    >>> round(exact_loss(tables_of((2, 1), (2, 1)), Fraction(1, 20)).number, 6)
    2.932834
    """
    return as_mechanism(tables, rate).loss(swap_flavor(), as_files(tables))


def as_files(tables: Sequence[Table]) -> dict[str, list[dict[str, int]]]:
    """The records of each table, by its name."""
    return {name_of(table): [{"held": h, "swapped": s} for h, s in table] for table in tables}


def _sorted(held: Sequence[int], swapped: Sequence[int]) -> Table:
    return tuple(sorted(zip(held, swapped, strict=True)))


def _require_few(records: int) -> None:
    if records > MOST_RECORDS:
        raise errors.parameter_out_of_range("records", records, f"at most {MOST_RECORDS}: all permutations are listed")


# -- practices ---------------------------------------------------------------------------------------------------

LOW, HALF, HIGH = Fraction("0.02"), Fraction("0.5"), Fraction("0.98")


@dataclass(frozen=True)
class Practice:
    """One practice on one example.

    ``practised`` gives the law of what is released from a file. ``rates`` are those of this package's swap on the same
    households, slot by slot; ``scores`` says whether households also have a score that is not released.
    """

    name: str
    title: str
    held: str
    swapped: str
    rates: tuple[Fraction, ...]
    practised: Callable[[File], Law]
    scores: str = ""

    @cached_property
    def files(self) -> tuple[File, ...]:
        """All files with these counts of held and of swap values."""
        orders = itertools.permutations(self.swapped)
        return tuple(sorted({tuple(sorted(zip(self.held, order, strict=True))) for order in orders}))

    @cached_property
    def theorem(self) -> float:
        """Epsilon of this package's swap, by the theorem."""
        return epsilon_of_rates([(rate, len(self.held)) for rate in self.rates])

    @cached_property
    def own(self) -> Loss:
        """The exact loss of this package's swap."""
        return self._loss(lambda file: tables(file, deranged(reselected(self.rates))), with_scores=False)

    @cached_property
    def loss(self) -> Loss:
        """The exact loss of the practice."""
        return self._loss(self.practised, with_scores=bool(self.scores))

    @property
    def times(self) -> float:
        """How many times the theorem's epsilon the practice loses."""
        return self.loss.number / self.theorem

    def chance(self, file: str, released: str) -> Fraction:
        """The probability that the practice releases this table from this file, both written by their names."""
        return self._law(file).get(released, Fraction(0))

    @cached_property
    def witness(self) -> tuple[str, str, str]:
        """A released table, and two files that it tells apart most for their distance."""
        pair = self.loss.worst
        assert pair is not None  # every example has two different files
        laws = [self._law(name) for name in (pair.first, pair.second)]
        outputs = sorted(set(laws[0]) | set(laws[1]))
        return max(outputs, key=lambda output: _apart(*(law.get(output, Fraction(0)) for law in laws))), *(
            pair.first, pair.second,
        )  # fmt: skip

    def __str__(self) -> str:
        lost = self.loss.number
        said = "no bound holds" if math.isinf(lost) else f"{self.times:.3f} times the bound"
        released, *files = self.witness
        first, second = (f"from {file} with {_chance(self.chance(file, released))}" for file in files)
        return (
            f"{self.name:<24}{self.theorem:<7.2f}{self.own.number:<7.2f}{lost:<7.2f}{said}\n"
            f"  {released} is released {first.replace('with', 'with probability')}, {second}"
        )

    def _law(self, file: str) -> Law:
        return self.practised({name_of(one): one for one in self._files(bool(self.scores))}[file])

    def _files(self, with_scores: bool) -> tuple[File, ...]:
        if not with_scores:
            return self.files
        given = list(itertools.product(self.scores, repeat=len(self.held)))
        found = {_scored(file, scores) for file in self.files for scores in given}
        return tuple(sorted(found))

    def _loss(self, law: Callable[[File], Law], *, with_scores: bool) -> Loss:
        files = {name_of(file): file for file in self._files(with_scores)}
        listed = {
            name: [dict(zip(("held", "swapped", "score"), record, strict=False)) for record in file]
            for name, file in files.items()
        }
        return FiniteMechanism.of({name: law(file) for name, file in files.items()}).loss(swap_flavor(), listed)


def practice(name: str) -> Practice:
    """The practice of this name."""
    named = {one.name: one for one in PRACTICES}
    if name not in named:
        raise errors.parameter_out_of_range("name", name, f"one of {', '.join(named)}")
    return named[name]


def _by_count(file: File, *, unique: Fraction, others: Fraction) -> list[Fraction]:
    """Rates by whether a record is the only one of its held value at its place."""
    counts = Counter(file)
    return [unique if counts[one] == 1 else others for one in file]


def _merged_where_places_are_alike(file: File) -> Law:
    """Held values are match values: strata are merged if one has a single swap value, and swapped at 2% then."""
    strata = [{one[1] for one in file if one[0] == value} for value in sorted({one[0] for one in file})]
    if any(len(places) == 1 for places in strata):
        return tables(file, deranged(reselected([LOW] * len(file))))
    return {name_of(file): Fraction(1)}  # records of one stratum share all that is held, so nothing can change


def _by_score(file: File) -> Law:
    """Rates by a score that is not released."""
    rates = [HIGH if one[2] == "+" else LOW for one in file]
    return tables(file, deranged(reselected(rates)))


PRACTICES: tuple[Practice, ...] = (
    Practice(
        "score-from-outside", "rates by a score that is not released",
        "01", "AB", (LOW, LOW), _by_score, scores="-+",
    ),
    Practice(
        "unique-in-county", "higher rates for records that are unique at their place",
        "0011", "AABB", (LOW,) * 4,
        lambda file: tables(file, deranged(reselected(_by_count(file, unique=HALF, others=LOW)))),
    ),
    Practice(
        "k-anonymity", "records that are unique at their place must move",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected(_by_count(file, unique=Fraction(1), others=LOW)))),
    ),
    Practice(
        "forced", "some records must move (rate 1)",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected([LOW, LOW, Fraction(1)]))),
    ),
    Practice(
        "frozen", "some records must stay (rate 0) among others that move",
        "001", "AAB", (LOW,) * 3,
        lambda file: tables(file, deranged(reselected([LOW, LOW, Fraction(0)]))),
    ),
    Practice(
        "nearest-donor", "the partner is the nearest household elsewhere",
        "001", "ABC", (LOW,) * 3,
        lambda file: tables(file, with_nearest(file, LOW)),
    ),
    Practice(
        "lone-dropped", "a record that is selected alone stays",
        "0123", "ABCD", (LOW, LOW, HIGH, HIGH),
        lambda file: tables(file, deranged(lone_dropped([LOW, LOW, HIGH, HIGH]))),
    ),
    Practice(
        "lone-kept", "a record that is selected alone waits for another",
        "01", "AB", (Fraction("0.8"),) * 2,
        lambda file: tables(file, deranged(lone_kept([Fraction("0.8")] * 2))),
    ),
    Practice(
        "lone-partnered", "a record that is selected alone gets a partner",
        "0123", "ABCD", (Fraction("0.001"),) * 4,
        lambda file: tables(file, deranged(lone_partnered([Fraction("0.001")] * 4))),
    ),
    Practice(
        "fixed-number", "exactly so many records move",
        "0123", "ABCD", (HALF,) * 4,
        lambda file: tables(file, deranged(fixed_number(4, 2))),
    ),
    Practice(
        "pairs-only", "records exchange two by two",
        "012", "ABC", (LOW,) * 3,
        lambda file: tables(file, paired([LOW] * 3)),
    ),
    Practice(
        "merge-by-place", "matches are made coarser where a stratum has one place",
        "0011", "AABB", (LOW,) * 4, _merged_where_places_are_alike,
    ),
    Practice(
        "best-of-five", "five draws, and the one that changes least is released",
        "01", "AB", (LOW, LOW),
        lambda file: best_of(5, file, deranged(reselected([LOW, LOW]))),
    ),
    Practice(
        "published-log", "which records moved is published",
        "01", "AB", (LOW, LOW),
        lambda file: with_log(file, deranged(reselected([LOW, LOW]))),
    ),
)  # fmt: skip
"""Each with its example. Rates are 2% where nothing else is said."""


# -- helpers -------------------------------------------------------------------------------------------------


def _scored(file: File, scores: Iterable[str]) -> File:
    return tuple(sorted((*record, score) for record, score in zip(file, scores, strict=True)))


def _apart(one: Fraction, other: Fraction) -> float:
    """How far apart two probabilities are, as an absolute log ratio."""
    if not one and not other:
        return 0.0
    return abs(math.log(one / other)) if one and other else math.inf


def _chance(chance: Fraction) -> str:
    """A short fraction as it is, a long one as a decimal number that is not rounded to 1."""
    if chance.denominator < 10_000:
        return str(chance)
    return f"1 - {float(1 - chance):.4g}" if chance > Fraction("0.9999") else f"{float(chance):.4g}"
