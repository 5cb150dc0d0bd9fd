"""Tables of persons, sums and weights under a swap, by brute force: every permutation of every stratum, in fractions.

Shares no code with the package but the law of a permutation, which ``swap_oracle`` takes from Algorithm 3.2.1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import polars as pl
from swap_oracle import permutation_law, permutations

Label = tuple[str, ...]
Law = dict[Fraction, Fraction]
"""The probability of each value that a cell can have."""


@dataclass(frozen=True)
class Household:
    region: str
    county: str
    tenure: str
    weight: Fraction
    income: int
    persons: tuple[tuple[str, int], ...]
    """Sex and age of each."""


Score = Callable[[Household], Iterable[tuple[Label, Fraction]]]
"""What a household brings into the rows of a table."""


def frames(households: Sequence[Household]) -> dict[str, pl.DataFrame]:
    """The same households as the package reads them."""
    main = pl.DataFrame(
        {
            "id": [str(number) for number in range(len(households))],
            "region": [one.region for one in households],
            "county": [one.county for one in households],
            "tenure": [one.tenure for one in households],
            "weight": [float(one.weight) for one in households],
            "income": [one.income for one in households],
        }
    )
    persons = [(str(number), *person) for number, one in enumerate(households) for person in one.persons]
    linked = pl.DataFrame(persons, schema={"id": pl.String, "sex": pl.String, "age": pl.Int64}, orient="row")
    return {"microdata": main, "persons": linked}


def cell_laws(households: Sequence[Household], rate: Fraction, score: Score) -> dict[tuple[Label, str], Law]:
    """For every row and county, the law of the released number; counties are swapped within regions."""
    laws: dict[tuple[Label, str], list[Law]] = defaultdict(list)
    for region in sorted({one.region for one in households}):
        stratum = [one for one in households if one.region == region]
        every, moved = permutations(len(stratum))
        chance = permutation_law(len(stratum), rate) if len(stratum) > 1 else (Fraction(1),) * 2
        scores = [dict(_merged(score(one))) for one in stratum]
        rows = sorted({label for one in scores for label in one})
        for label, county in product(rows, sorted({one.county for one in stratum})):
            law: Law = defaultdict(Fraction)
            for sigma, many in zip(every, moved, strict=True):
                here = [own for own, j in zip(scores, sigma, strict=True) if stratum[int(j)].county == county]
                value = sum((own.get(label, Fraction(0)) for own in here), start=Fraction(0))
                law[value] += chance[int(many)]
            laws[(label, county)].append(law)
    return {key: _convolved(parts) for key, parts in laws.items()}


def true_cells(households: Sequence[Household], score: Score) -> dict[tuple[Label, str], Fraction]:
    found: dict[tuple[Label, str], Fraction] = defaultdict(Fraction)
    for one in households:
        for label, value in score(one):
            found[(label, one.county)] += value
    return found


def moments(law: Law) -> tuple[Fraction, Fraction]:
    mean = sum((value * chance for value, chance in law.items()), start=Fraction(0))
    return mean, sum((value**2 * chance for value, chance in law.items()), start=Fraction(0)) - mean**2


def _merged(scores: Iterable[tuple[Label, Fraction]]) -> dict[Label, Fraction]:
    found: dict[Label, Fraction] = defaultdict(Fraction)
    for label, value in scores:
        found[label] += value
    return found


def _convolved(laws: Sequence[Law]) -> Law:
    found: Law = {Fraction(0): Fraction(1)}
    for law in laws:
        following: Law = defaultdict(Fraction)
        for (one, chance), (other, also) in product(found.items(), law.items()):
            following[one + other] += chance * also
        found = following
    return found
