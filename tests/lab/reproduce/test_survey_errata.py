"""What chapters 6 and 7 print wrongly about surveys, by listing all samples of small frames.

Written from the definitions and without any function of the package but the list of published numbers: whatever will
be built for surveys must agree with this.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from stirred.lab.reproduce.catalogue import items, published

E = math.e


# -- mechanisms on samples of bits ---------------------------------------------------------------------------


def response(epsilon):
    """Randomised response of one bit: a dictionary of probabilities for each bit."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return {bit: {0: keep if bit == 0 else 1 - keep, 1: keep if bit == 1 else 1 - keep} for bit in (0, 1)}


def count(size, epsilon):
    """The number of ones in a sample, with two-sided geometric noise cut off at 0 and ``size``."""
    a = math.exp(-epsilon)
    laws = {}
    for k in range(size + 1):
        law = {t: (1 - a) / (1 + a) * a ** abs(t - k) for t in range(size + 1)}
        law[0], law[size] = a**k / (1 + a), a ** (size - k) / (1 + a)
        assert sum(law.values()) == pytest.approx(1)
        laws[k] = law
    return laws


def samples(units, size, replace=False):
    """All samples of units, equally probable."""
    return list(itertools.product(range(units), repeat=size) if replace else itertools.combinations(range(units), size))


def mixed(laws):
    """The average of laws."""
    total = {}
    for law in laws:
        for t, p in law.items():
            total[t] = total.get(t, 0.0) + p / len(laws)
    return total


def released(frame, size, on_sample, replace=False, given=None):
    """The law of T' = T after sampling, for one frame of bits; given that a unit is in the sample, if it is named."""
    chosen = [s for s in samples(len(frame), size, replace) if given is None or given in s]
    return mixed([on_sample([frame[unit] for unit in s]) for s in chosen])


def log_ratio(p, q):
    return max(abs(math.log(p[t] / q[t])) for t in p)


def frame_loss(units, size, on_sample, replace=False, given=None):
    """The largest log ratio over all frames that differ in one record (in the named one, if there is one)."""
    worst = 0.0
    for frame in itertools.product((0, 1), repeat=units):
        for unit in range(units) if given is None else [given]:
            other = tuple(1 - bit if at == unit else bit for at, bit in enumerate(frame))
            laws = [released(one, size, on_sample, replace, given) for one in (frame, other)]
            worst = max(worst, log_ratio(*laws))
    return worst


def amplified(epsilon, rate):
    return math.log(1 + rate * (math.exp(epsilon) - 1))


def answered(epsilon):
    """Randomised response on a sample of one."""
    laws = response(epsilon)
    return lambda bits: laws[bits[0]]


def answered_twice(first, second):
    """Two randomised responses on the same sample of one."""
    one, other = response(first), response(second)
    return lambda bits: {(a, b): p * q for a, p in one[bits[0]].items() for b, q in other[bits[0]].items()}


def counted(size, epsilon):
    laws = count(size, epsilon)
    return lambda bits: laws[sum(bits)]


# -- amplification -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("units", "size"), [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3)])
def test_theorem_6_4_1_holds_without_replacement_and_not_with_it(units, size):
    bound = amplified(1, size / units)
    assert frame_loss(units, size, counted(size, 1)) == pytest.approx(bound)  # a count attains it
    if size > 1:
        assert frame_loss(units, size, counted(size, 1), replace=True) > bound + 0.01


def test_theorem_6_4_1_everything_sampled_with_replacement_loses_more_than_epsilon():
    assert frame_loss(2, 2, counted(2, 1)) == pytest.approx(1)
    assert frame_loss(2, 2, counted(2, 1), replace=True) == pytest.approx(math.log(0.25 + 0.5 * E + 0.25 * E**2))


def test_section_6_5_2_two_mechanisms_on_one_sample_lose_more_than_their_sum():
    # One of ten records: a frame of ten bits is 1,024 frames, and those with equally many ones are alike.
    def loss(on_sample):
        laws = [released((1,) * ones + (0,) * (10 - ones), 1, on_sample) for ones in range(11)]
        return max(log_ratio(p, q) for p, q in itertools.pairwise(laws))

    first, second, both = loss(answered(1)), loss(answered(2)), loss(answered_twice(1, 2))
    for key, found in (("first", first), ("second", second), ("naive", first + second), ("both", both)):
        item = items()[f"thesis/section-6.5.2/{key}"]
        assert f"{found:.2f}" == item.published and f"{found:.6f}" == item.further
    assert both == pytest.approx(amplified(3, 0.1))
    # The caption of Figure 6.1, for two mechanisms of equal loss: printed without the factor of 2.
    for epsilon in (0.5, 1, 2):
        true = loss(answered_twice(epsilon, epsilon))
        assert true == pytest.approx(amplified(2 * epsilon, 0.1))
        assert true > 2 * amplified(epsilon, 0.1) > amplified(epsilon, 0.1)
    assert published("thesis/section-6.5.2/composed") == "3"


def test_section_6_5_2_fresh_samples_add_up():
    laws = [
        {(a, b): p * q for a, p in one.items() for b, q in other.items()}
        for one, other in (
            (released(frame, 1, answered(1)), released(frame, 1, answered(2))) for frame in ((1, 0, 0), (0, 0, 0))
        )
    ]
    assert log_ratio(*laws) == pytest.approx(amplified(1, 1 / 3) + amplified(2, 1 / 3))


def test_figure_6_1_the_true_loss_is_above_the_sum_at_every_epsilon():
    epsilon = np.linspace(0, 8, 801)[1:]
    naive = 2 * np.log(1 + 0.1 * (np.exp(epsilon) - 1))
    true = np.log(1 + 0.1 * (np.exp(2 * epsilon) - 1))
    assert np.all(true > naive)
    gap = true - naive
    assert np.all(np.diff(gap) > 0)  # they part from 0 on, whatever the range of the axis
    assert gap[0] < 1e-5
    assert gap[-1] == pytest.approx(math.log(10), abs=0.01)  # and their difference tends to -ln f
    # Small epsilon: both are about 2 f epsilon.
    assert naive[0] == pytest.approx(0.2 * epsilon[0], rel=0.01) and true[0] == pytest.approx(naive[0], rel=0.01)


# -- who knows what ------------------------------------------------------------------------------------------


def test_section_6_5_1_an_optimal_mechanism_has_a_ratio_of_e_to_the_epsilon():
    for epsilon in (0.3, 1.0, 2.0):
        laws = response(epsilon)
        assert laws[1][1] / laws[0][1] == pytest.approx(math.exp(epsilon))
        assert laws[1][1] / laws[0][1] > epsilon + 0.5  # as printed it would be epsilon itself


def ratio_of_posteriors(prior, likelihood_one, likelihood_zero):
    """P(r = 1 | T = t) over the same where the record is redrawn from the prior: equation 6.2 with the rest known."""
    return likelihood_one / (prior * likelihood_one + (1 - prior) * likelihood_zero)


@pytest.mark.parametrize(
    ("prior", "nosy", "unconditional"),
    [(0.5, 1.462117, 1.300489), (0.1, 2.319693, None), (0.01, 2.672363, 1.843304), (1e-4, 2.717815, None)],
)
def test_section_6_5_1_the_nosy_neighbour_comes_close_to_the_bound_as_the_prior_vanishes(prior, nosy, unconditional):
    # One of two is sampled, the other record is a zero; the output is a one.
    ones, zeros = ([released((bit, 0), 1, answered(1), given=given)[1] for given in (0, None)] for bit in (1, 0))
    knowing, not_knowing = (ratio_of_posteriors(prior, a, b) for a, b in zip(ones, zeros, strict=True))
    assert knowing == pytest.approx(nosy, abs=5e-7)
    assert knowing < E  # approached, not achieved
    assert not_knowing < math.exp(amplified(1, 0.5)) == pytest.approx(1.859141, abs=5e-7)
    if unconditional:
        assert not_knowing == pytest.approx(unconditional, abs=5e-7)
    if prior <= 0.1:
        assert knowing > math.exp(amplified(1, 0.5))  # no amplification


def test_section_6_5_1_the_journalist_is_held_to_the_loss_on_the_sample():
    """The corrected display, against Bayes on the joint law of frame, sample and output; two of three, a count."""
    prior = {frame: math.prod(0.05 if bit else 0.95 for bit in frame) for frame in itertools.product((0, 1), repeat=3)}
    laws = count(2, 1.0)
    joint, redrawn = {}, {}
    for frame, mass in prior.items():
        for first, second in itertools.permutations(range(3), 2):  # the sample in a random order: its first record
            weight = mass / 6
            for t, p in laws[frame[first] + frame[second]].items():
                joint[frame[first], t] = joint.get((frame[first], t), 0.0) + weight * p
            for bit, chance in ((0, 0.95), (1, 0.05)):
                for t, p in laws[bit + frame[second]].items():
                    redrawn[frame[first], t] = redrawn.get((frame[first], t), 0.0) + weight * chance * p

    def posterior(law, r, t):
        return law[r, t] / (law[0, t] + law[1, t])

    # The sums of the display: rest s^-, value r of the record, redrawn values r'.
    chance = {0: 0.95, 1: 0.05}
    for t in (0, 1, 2):
        for r in (0, 1):
            numerator = sum(chance[rest] * chance[r] * laws[rest + r][t] for rest in (0, 1))
            denominator = sum(
                chance[rest] * chance[r] * sum(chance[other] * laws[rest + other][t] for other in (0, 1))
                for rest in (0, 1)
            )
            ratio = posterior(joint, r, t) / posterior(redrawn, r, t)
            assert ratio == pytest.approx(numerator / denominator)
            assert 1 / E <= ratio <= E
    highest = posterior(joint, 1, 2) / posterior(redrawn, 1, 2)
    assert highest > math.exp(amplified(1, 2 / 3))  # beyond the amplified loss; as printed the ratio would be 1


def test_example_6_2_2_what_is_made_inside_a_mechanism_is_not_covered_by_its_loss():
    for units, size, on_sample in ((2, 1, answered(1)), (4, 2, counted(2, 1))):
        assert frame_loss(units, size, on_sample) == pytest.approx(amplified(1, size / units))
        assert frame_loss(units, size, on_sample, given=0) == pytest.approx(1)  # a record that is in the sample


# -- flavors -------------------------------------------------------------------------------------------------


def test_definition_6_2_4_premetrics_take_the_value_infinity():
    def neighbours(x, y):
        return 0 if x == y else 1 if sum(a != b for a, b in zip(x, y, strict=True)) == 1 else math.inf

    data = list(itertools.product((0, 1), repeat=2))
    assert {neighbours(x, y) for x in data for y in data} == {0, 1, math.inf}  # Example 6.2.3
    # With finite values only every dataset would be connected with every other: [d] (Definition 6.2.10) is everything.
    assert {y for y in data if neighbours((0, 0), y) < math.inf} == {(0, 0), (0, 1), (1, 0)}


def test_section_6_3_ten_settings_and_none_is_invariant_at_its_own_level():
    stages = ("population", "frame", "sample", "responding")
    # Invariance at a stage implies it at all earlier ones, so that a setting is a level and the last invariant stage.
    settings = [(level, last) for level in range(4) for last in (None, *range(4)) if last is None or last < level]
    assert len(settings) == int(published("thesis/table-6.1/settings/all")) == 10
    for number, stage in enumerate(stages):
        found = sum(level == number for level, _ in settings)
        assert found == int(published(f"thesis/table-6.1/settings/{stage}"))
    # The printed example, at the frame level and frame-invariant, is none of them; at the sample level it is one.
    assert (1, 1) not in settings and (2, 1) in settings


# -- Laplace noise for a specification -----------------------------------------------------------------------


def scales_as_printed(query, universes):
    """Delta over the universes within [d], the datasets that share a universe with d; epsilon and distances 1."""
    scales = {}
    for dataset in query:
        component = set().union(*(universe for universe in universes if dataset in universe))
        inside = [universe for universe in universes if universe <= component]
        scales[dataset] = max(abs(query[a] - query[b]) for universe in inside for a in universe for b in universe)
    return scales


def scales_as_corrected(query, universes):
    classes = [{dataset} for dataset in query]
    for universe in universes:
        met = [one for one in classes if one & universe]
        classes = [one for one in classes if not one & universe] + [set().union(*met)]
    scales = {}
    for members in classes:
        inside = [universe for universe in universes if universe <= members]
        largest = max(abs(query[a] - query[b]) for universe in inside for a in universe for b in universe)
        scales |= dict.fromkeys(members, largest)
    return scales


def laplace_log_ratio(at, scale, other, other_scale):
    """sup |ln f/g| of two Laplace densities: infinite where their scales differ."""
    return abs(at - other) / scale if scale == other_scale else math.inf


def test_definition_6_4_2_scales_must_not_differ_within_a_universe():
    query = {"a": 0.0, "b": 1.0, "c": 3.0}
    universes = [{"a", "b"}, {"b", "c"}]
    printed, corrected = scales_as_printed(query, universes), scales_as_corrected(query, universes)
    assert printed == {"a": 1, "b": 2, "c": 2}
    assert corrected == {"a": 2, "b": 2, "c": 2}
    for scales, holds in ((printed, False), (corrected, True)):
        losses = [laplace_log_ratio(query[x], scales[x], query[y], scales[y]) for u in universes for x in u for y in u]
        assert (max(losses) <= 1) == holds
    assert max(losses) == 1
    # Universes that do not overlap keep scales of their own, in both forms.
    apart = [{"a", "b"}, {"c"}]
    assert scales_as_printed(query, apart) == scales_as_corrected(query, apart) == {"a": 1, "b": 1, "c": 0}


# -- weighted estimates --------------------------------------------------------------------------------------


def distance(s, t):
    """Records in which two samples of equal size differ: units that one has and the other has not."""
    return len(set(s) - set(t))


def totals(weighted, size):
    return {s: sum(weighted[unit] for unit in s) for s in samples(len(weighted), size)}


def sensitivity(values, apart=None):
    pairs = itertools.combinations(values, 2)
    return max(abs(values[s] - values[t]) for s, t in pairs if apart is None or distance(s, t) == apart)


def test_section_6_4_5_the_bound_holds_at_hamming_distance_one_and_not_beyond():
    found = totals((0, 0, 10, 10), 2)
    assert sensitivity(found, apart=1) == 10
    assert sensitivity(found) == 20  # the printed supremum over all samples
    found = totals((2, 12, 10, 10), 2)  # w = 2, 4, 5, 10 and x = 1, 3, 2, 1
    assert sensitivity(found, apart=1) == 12 - 2
    rng = np.random.default_rng(61)
    beyond = 0
    for _ in range(200):
        weighted = (rng.integers(1, 9, 5) * rng.integers(-3, 4, 5)).tolist()
        found, bound = totals(weighted, 3), max(weighted) - min(weighted)
        assert sensitivity(found, apart=1) <= bound
        assert all(abs(found[s] - found[t]) <= bound * distance(s, t) for s, t in itertools.combinations(found, 2))
        beyond += sensitivity(found) > bound
    assert beyond > 50


def test_section_6_4_5_values_that_are_free_raise_the_sensitivity():
    weights, values = (2, 4, 5, 10), (1, 3, 2, 1)
    # A sample is a set of (unit, value); neighbours differ in one record, which may be of another unit.
    fixed = [{unit: values[unit] for unit in s} for s in samples(4, 2)]
    free = [dict(zip(s, x, strict=True)) for s in samples(4, 2) for x in itertools.product((1, 2, 3), repeat=2)]

    def largest(datasets):
        found = 0
        for s, t in itertools.combinations(datasets, 2):
            if len(set(s.items()) - set(t.items())) == 1:
                found = max(
                    found, abs(sum(weights[i] * x for i, x in s.items()) - sum(weights[i] * x for i, x in t.items()))
                )
        return found

    assert largest(fixed) == max(2, 12, 10, 10) - 2 == 10
    assert largest(free) == 10 * 3 - 2 * 1 == 28


def test_section_6_4_4_strata_lower_the_sensitivity_between_samples_one_record_apart():
    strata, weight = ((0, 1), (10, 12)), 2
    found = {
        (a, 2 + b): weight * (strata[0][a] + strata[1][b]) for a in (0, 1) for b in (0, 1)
    }  # one unit of each stratum; units 0, 1 and 2, 3
    assert sensitivity(found, apart=1) == 4
    assert sensitivity(found) == 6  # comparable samples at any distance
    everything = weight * (12 - 0)
    assert everything == 24  # without strata a unit of one may take the place of a unit of the other
    unstratified = totals([weight * x for x in (0, 1, 10, 12)], 2)
    assert sensitivity(unstratified, apart=1) == 24


def test_section_7_4_values_that_change_and_units_that_change_have_two_sensitivities():
    weights, values = (1, 10), (1, 1)
    # Chapter 7: a value changes within the range of values, its weight stays.
    changes = [w * abs(x - y) for w in weights for x in values for y in values]
    assert max(changes) == max(weights) * (max(values) - min(values)) == 0
    # Chapter 6: one unit is sampled, and it may be the other one.
    assert sensitivity(totals((1, 10), 1), apart=1) == 9
    # Values 0 and 1, all of them possible: both are the largest weight.
    assert max(w * abs(x - y) for w in weights for x in (0, 1) for y in (0, 1)) == 10
    either = {(unit, x): weights[unit] * x for unit in (0, 1) for x in (0, 1)}
    assert max(either.values()) - min(either.values()) == 10
    # Equal probabilities: w = N/n, and the mean has the sensitivity R/n of the unweighted one.
    n, units, spread = 3, 7, 5
    assert Fraction(units, n) * spread / units == Fraction(spread, n)


def test_section_7_4_inclusion_probabilities_by_size_sum_to_the_sample_size():
    def probabilities(sizes, n):
        mean = Fraction(sum(sizes), len(sizes))
        return [Fraction(n * x) / (len(sizes) * mean) for x in sizes], [
            Fraction(n * x, len(sizes)) * mean for x in sizes
        ]

    right, printed = probabilities((10, 20, 30, 40), 2)
    assert right == [Fraction(1, 5), Fraction(2, 5), Fraction(3, 5), Fraction(4, 5)] and sum(right) == 2
    assert printed[0] == 125 and sum(printed) != 2
    # One size changes, and with it every weight.
    changed, _ = probabilities((20, 20, 30, 40), 2)
    assert sum(changed) == 2 and all(a != b for a, b in zip(right, changed, strict=True))
    assert [round(float(1 / p), 4) for p in changed] == [2.75, 2.75, 1.8333, 1.375]
