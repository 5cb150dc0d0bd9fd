"""The privacy loss of imputing and analysing small files, by listing: epsilon1 + epsilon2, more without noise.

All neighbouring pairs of files of two or three records are compared. Categories: probabilities are whole numbers over a
common denominator (two-sided geometric noise with ratios 1/2 and 2/3), so that every comparison is exact.
"""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

from stirred.survey.imputing import (
    Lattice,
    LinearModel,
    ParameterShare,
    count_answers,
    frequency_weights,
    linear_statistics,
)

RECORDS = tuple(itertools.product((0, 1), (-1, 0, 1)))  # group, answer

# Parameters: each count has noise of ratio q1 = exp(-epsilon1 / 2) = 1/2, so exp(epsilon1) = 4.
# Analysis: one record changes a sum by at most 2; noise of ratio exp(-epsilon2 / 2) = 2/3, so exp(epsilon2) = 9/4.
PARAMETERS_FACTOR, ANALYSIS_FACTOR = 4, Fraction(9, 4)


def files(records):
    return list(itertools.product(RECORDS, repeat=records))


def neighbours(records):
    for file in files(records):
        for place, other in itertools.product(range(records), RECORDS):
            if file[place] != other:
                yield file, (*file[:place], other, *file[place + 1 :])


def counted(file):
    groups, answers = np.array(file).T
    return count_answers(groups, answers, 2, 2)


def completed_sums(file, weights, row_weights):
    """{weighted number of ones: numerators} over the product of both groups' totals to the power of the records."""
    totals = row_weights.sum(axis=-1)
    law = {0: np.ones(len(totals), dtype=np.int64)}
    for (group, answer), weight in zip(file, weights, strict=True):
        other = totals[:, 1 - group]
        chances = {
            value: (totals[:, group] if answer == value else 0 * other) if answer >= 0 else row_weights[:, group, value]
            for value in (0, 1)
        }
        after: dict[int, np.ndarray] = {}
        for total, ways in law.items():
            for value in (0, 1):
                found = ways * chances[value] * other
                after[total + value * weight] = after.get(total + value * weight, 0) + found
        law = after
    return law


def noisy_sums(law, top):
    """Numerators of -1, ..., top + 1 after noise of ratio 2/3; beyond these, ratios of two files do not change."""
    most = top + 1
    return np.stack(
        [
            sum(ways * (2 ** abs(seen - total) * 3 ** (most - abs(seen - total))) for total, ways in law.items())
            for seen in range(-1, top + 2)
        ],
        axis=1,
    )


def noisy_tables(records, beyond):
    values = range(-beyond, records + beyond + 1)
    return np.array(list(itertools.product(values, repeat=4)), dtype=np.int64).reshape(-1, 2, 2)


def joint_law(file, weights, noisy, row_weights, beyond):
    """Numerators for every table of noisy counts and every noisy sum."""
    distance = np.abs(noisy - counted(file)).sum(axis=(1, 2))
    parameters = 1 << (4 * (len(file) + beyond) - distance)
    return parameters[:, None] * noisy_sums(completed_sums(file, weights, row_weights), sum(weights))


@pytest.mark.parametrize("weights", [(1, 2), (2, 2), (1, 2, 2)])
def test_noisy_frequencies_and_a_noisy_sum_lose_epsilon1_and_epsilon2_and_no_more(weights):
    records, beyond = len(weights), 2 if len(weights) == 2 else 1
    noisy = noisy_tables(records, beyond)
    row_weights = frequency_weights(noisy)
    laws = {file: joint_law(file, weights, noisy, row_weights, beyond) for file in files(records)}
    assert max(int(law.max()) for law in laws.values()) < 2**58  # nothing overflows, also times 9
    bound = PARAMETERS_FACTOR * ANALYSIS_FACTOR
    assert bound == 9
    attained = False
    for one, other in neighbours(records):
        assert (laws[one] <= 9 * laws[other]).all()
        attained = attained or bool(((laws[one] == 9 * laws[other]) & (laws[other] > 0)).any())
    assert attained  # so that nothing smaller than epsilon1 + epsilon2 could be claimed


def test_the_noisy_sum_alone_loses_at_most_epsilon1_and_epsilon2():
    """All noisy tables within 6 of the truth are added up; the rest has a probability below 5%, counted in full."""
    weights, beyond = (1, 2), 6
    noisy = noisy_tables(2, beyond)
    row_weights = frequency_weights(noisy)
    totals = row_weights.sum(axis=-1).prod(axis=-1).astype(float) ** 2
    outside = 1 - (1 - 2 * 0.5 ** (beyond + 1) / 1.5) ** 4
    least, most = {}, {}
    for file in files(2):
        chance = (0.5 ** np.abs(noisy - counted(file)).sum(axis=(1, 2))) * (1 / 3) ** 4
        sums = noisy_sums(completed_sums(file, weights, row_weights), 3) / totals[:, None] / (5 * 3**4)
        least[file] = chance @ sums
        most[file] = least[file] + outside / 5  # no noisy sum is more likely than 1/5
    assert outside < 0.05
    assert max((most[one] / least[other]).max() for one, other in neighbours(2)) < 9


def test_with_gaussian_noise_rho1_and_rho2_add_up():
    """The Renyi divergence of order 2, over noisy tables within 4 of the truth: the rest can add little."""
    weights, rho = (1, 2), ParameterShare.of(rho=1)
    parameters_variance, analysis_variance = float(rho.noise(2, 2)), 4.0  # 2^2 / (2 variance) = 1/2 = rho2
    assert parameters_variance == 1
    noisy, seen = noisy_tables(2, 4), np.arange(-8, 12)
    row_weights = frequency_weights(noisy)
    totals = row_weights.sum(axis=-1).prod(axis=-1).astype(float) ** 2
    noise = {mean: np.exp(-((seen - mean) ** 2) / (2 * analysis_variance)) for mean in range(4)}
    laws = {}
    for file in files(2):
        chance = np.exp(-((noisy - counted(file)) ** 2).sum(axis=(1, 2)) / (2 * parameters_variance)) / totals
        sums = completed_sums(file, weights, row_weights)
        laws[file] = chance[:, None] * sum(ways[:, None] * noise[mean] for mean, ways in sums.items())
    mass = (2 * np.pi * parameters_variance) ** 2 * (2 * np.pi * analysis_variance) ** 0.5
    worst = max(np.log((laws[one] ** 2 / laws[other]).sum() / mass) for one, other in neighbours(2))
    assert 0.98 * 2 * (1 + 0.5) <= worst <= 2 * (1 + 0.5) + 1e-6


def exact_output_law(file, weights, imputed_laws):
    """Probabilities of the noisy sum; ``imputed_laws`` gives {completed answers: probability} of a file."""
    sums: dict[int, Fraction] = {}
    for answers, chance in imputed_laws(file).items():
        total = sum(weight for answer, weight in zip(answers, weights, strict=True) if answer == 1)
        sums[total] = sums.get(total, Fraction(0)) + chance
    noise = Fraction(2, 3)
    return [sum(p * noise ** abs(seen - s) for s, p in sums.items()) / 5 for seen in range(-1, sum(weights) + 2)]


def rows_independent(chances_of_row):
    """The law of completed answers where each missing one is drawn by itself."""

    def law(file):
        found = {(): Fraction(1)}
        for place, (_, answer) in enumerate(file):
            chances = [Fraction(answer == value) for value in (0, 1)] if answer >= 0 else chances_of_row(file, place)
            found = {(*so_far, v): p * chances[v] for so_far, p in found.items() for v in (0, 1) if chances[v]}
        return found

    return law


def exact_frequencies(file, place):
    row = frequency_weights(counted(file)[None])[0][file[place][0]]
    return [Fraction(int(weight), int(row.sum())) for weight in row]


def one_donor(file, place):
    """Sequential hot deck: the first observed answer of the same group, else of all; without any, a fair coin."""
    group = file[place][0]
    donors = [answer for other, answer in file if answer >= 0 and other == group]
    donors = donors or [answer for _, answer in file if answer >= 0]
    return [Fraction(donors[0] == value) for value in (0, 1)] if donors else [Fraction(1, 2)] * 2


def loss_of(imputed_laws, weights, pairs):
    law = functools.cache(lambda file: exact_output_law(file, weights, imputed_laws))
    return max(p / q for one, other in pairs for p, q in zip(law(one), law(other), strict=True))


@pytest.mark.parametrize("chances", [exact_frequencies, one_donor])
def test_frequencies_without_noise_and_hot_deck_lose_more_than_epsilon2(chances):
    """One observed record decides the other two: the sum of weights 5 moves as a whole."""
    weights = (1, 2, 2)
    worst = loss_of(rows_independent(chances), weights, neighbours(3))
    assert worst == Fraction(3, 2) ** 5 > ANALYSIS_FACTOR


def test_given_parameters_lose_epsilon2_and_no_more():
    """The same search finds nothing where there is nothing to be found."""
    given = {0: [Fraction(1, 4), Fraction(3, 4)], 1: [Fraction(1), Fraction(0)]}
    law = rows_independent(lambda file, place: given[file[place][0]])
    assert loss_of(law, (1, 2, 2), neighbours(3)) == ANALYSIS_FACTOR


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_the_average_of_several_draws_from_the_same_parameters_loses_no_more_than_one(draws):
    """The sum over the completed files: one record changes it by 2 for each draw, and its noise is as much wider."""
    given, weights = {0: Fraction(1, 4), 1: Fraction(2, 3)}, (1, 2)
    factor = Fraction(3, 2) ** (2 * draws)  # exp(epsilon2) with noise of ratio 2/3 on the sum over all draws

    def law(file):
        sums = {0: Fraction(1)}
        for (group, answer), weight in zip(file, weights, strict=True):
            for _ in range(draws):
                one = Fraction(answer) if answer >= 0 else given[group]
                after: dict[int, Fraction] = {}
                for total, chance in sums.items():
                    for value, p in ((0, 1 - one), (1, one)):
                        after[total + value * weight] = after.get(total + value * weight, Fraction(0)) + chance * p
                sums = after
        seen = range(-1, 3 * draws + 2)
        return [sum(p * Fraction(2, 3) ** abs(one - total) for total, p in sums.items()) for one in seen]

    found = {file: law(file) for file in files(2)}
    assert max(p / q for a, b in neighbours(2) for p, q in zip(found[a], found[b], strict=True)) == factor


def tail(variance, least):
    """P(a discrete Gaussian is at least ``least``)."""
    if variance == 0:
        return float(least <= 0)
    numbers = np.arange(-40, 41)
    law = np.exp(-(numbers**2) / (2 * float(variance)))
    return law[numbers >= least].sum() / law.sum()


def test_a_noisy_regression_and_a_noisy_sum_lose_epsilon1_and_epsilon2_and_no_more():
    """Two records, z and x in {0, 1}; floating-point numbers, whose errors are far below the margin of 1e-9."""
    epsilon = 8
    share, lattice = ParameterShare.of(epsilon=epsilon), Lattice(0, 1, 1)
    boxes = [range(4), range(-2, 3), range(-2, 3), range(4), range(-2, 3), range(4)]
    noisy = np.array(list(itertools.product(*boxes)), dtype=np.int64)
    ones = np.empty((len(noisy), 2))  # P(imputed 1) given z
    slopes = set()
    for place, sums in enumerate(noisy.tolist()):
        model = LinearModel(lattice, lattice, tuple(sums), share)
        slopes.add(model.slope)
        centres = model.predicted(np.arange(2))
        ones[place] = [tail(model.fit[2], 1 - int(centre)) for centre in centres]
    assert len(slopes) > 10 and ones.min() == 0 and ones.max() == 1
    scale = float(Fraction(6, epsilon))
    weights, laws = (1, 2), {}
    for file in files(2):
        z, x = np.array(file).T
        parameters = np.exp(-np.abs(noisy - linear_statistics(z, x, 1, 1)).sum(axis=1) / scale)
        found = np.zeros((len(noisy), 6))
        for answers in itertools.product((0, 1), repeat=2):
            chance = np.ones(len(noisy))
            for row, value in enumerate(answers):
                drawn = ones[:, z[row]] if value else 1 - ones[:, z[row]]
                chance = chance * (drawn if x[row] < 0 else float(x[row] == value))
            total = sum(weight * value for weight, value in zip(weights, answers, strict=True))
            found += chance[:, None] * (2 / 3) ** np.abs(np.arange(-1, 5) - total)
        laws[file] = parameters[:, None] * found
    bound = np.exp(epsilon) * float(ANALYSIS_FACTOR)
    worst = max((laws[one] / laws[other]).max() for one, other in neighbours(2))
    assert 0.99 * bound <= worst <= bound * (1 + 1e-9)
