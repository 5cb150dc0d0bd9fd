"""What each kind of imputation does to sensitivity, unit and total loss, against brute force on small files."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from stirred.errors import SurveyError
from stirred.spec import flavors, per_respondent
from stirred.survey.plan.imputation_kinds import (
    KINDS,
    imputation_kind,
    loss_with_imputation,
    records_touched,
    sensitivity_before_imputation,
)


def neighbours(records, values):
    """Pairs of files that differ in one record; None is a missing value."""
    for file in itertools.product(values, repeat=records):
        for place, other in itertools.product(range(records), values):
            yield file, (*file[:place], other, *file[place + 1 :])


def test_mean_imputation_and_hot_deck_have_the_sensitivities_of_the_worked_example():
    assert sensitivity_before_imputation("mean", missing=50, observed=10) == 6
    assert sensitivity_before_imputation("hot deck", missing=50) == 51


@pytest.mark.parametrize("fewest", [1, 2, pytest.param(3, marks=pytest.mark.slow), 4])
def test_the_sensitivity_of_mean_imputation_is_that_of_a_search_through_all_files(fewest):
    records, values = 5, (Fraction(0), Fraction(1, 2), Fraction(1), None)

    def total(file):
        seen = [value for value in file if value is not None]
        return Fraction(records) * sum(seen) / len(seen) if len(seen) >= fewest else None

    changes = [(total(one), total(other)) for one, other in neighbours(records, values)]
    worst = max(abs(one - other) for one, other in changes if one is not None and other is not None)
    assert worst == sensitivity_before_imputation("mean", missing=records - fewest, observed=fewest)


def test_the_sensitivity_of_hot_deck_is_attained_and_not_exceeded():
    """The donor of a record is the nearest observed one before it, else after it: a sequential hot deck."""
    records = 4

    def total(file):
        seen = [place for place, value in enumerate(file) if value is not None]
        donors = [max((p for p in seen if p <= i), default=seen[0]) for i in range(records)]
        return sum(file[donor] for donor in donors)

    changes = [
        abs(total(one) - total(other))
        for one, other in neighbours(records, (0, 1, None))
        if any(value is not None for value in one) and any(value is not None for value in other)
    ]
    assert max(changes) == sensitivity_before_imputation("hot deck", missing=records - 1) == 4


def test_the_sensitivity_of_regression_imputation_is_attained_by_one_record_far_from_the_others():
    """Observed at z = 0 with x = 0 three times and once at z = 1: it alone decides all predictions at z = 1."""
    missing = 7

    def total(last):
        slope, intercept = Fraction(last), Fraction(0)  # least squares through (0, 0) three times and (1, last)
        predicted = min(max(intercept + slope, 0), 1)
        return last + missing * predicted

    assert total(1) - total(0) == sensitivity_before_imputation("linear regression", missing=missing)


def test_row_wise_imputation_with_public_or_private_parameters_leaves_the_sensitivity_alone():
    for name in ("given parameters", "private parameters", "multiple", "editing by record"):
        assert sensitivity_before_imputation(name, missing=10**6, width="2.5") == Fraction(5, 2)
        assert records_touched(name, missing=10**6) == 1
        assert imputation_kind(name).row_wise


def test_a_donor_stands_in_one_record_more_than_was_copied():
    assert records_touched("hot deck", missing=3) == 4
    assert records_touched("hot deck", missing=3, copies=1) == 2
    assert records_touched("mean", missing=3) == 4
    loss = per_respondent(flavors.zcdp("person").at("55.371"), records_touched("hot deck", missing=9, copies=1))
    assert loss.specification.budget.shown() == "221.484"  # section 3.4.4


def test_losses_of_parameters_and_analysis_add_up_exactly_where_that_is_proved():
    assert loss_with_imputation("private parameters", analysis=0.1, parameters=0.2) == Fraction(3, 10)
    assert loss_with_imputation("multiple", analysis=1, parameters=1) == 2
    assert loss_with_imputation("given parameters", analysis="1/3") == Fraction(1, 3)


def test_hot_deck_is_refused_with_the_reason_and_the_remedy():
    with pytest.raises(SurveyError, match=r"copies answers .* may decide every imputed value") as refused:
        loss_with_imputation("hot deck", analysis=1, parameters=1)
    assert refused.value.kind == "hot-deck" and "stirred.survey.imputing" in str(refused.value)


@pytest.mark.parametrize("name", ["mean", "conditional frequencies", "linear regression", "editing across records"])
def test_losses_do_not_add_up_for_parameters_without_noise_or_steps_across_records(name):
    with pytest.raises(SurveyError) as refused:
        loss_with_imputation(name, analysis=1, parameters=1)
    assert refused.value.kind == "imputation-depends" and name in str(refused.value)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: imputation_kind("cold deck"), "imputation-kind"),
        (lambda: sensitivity_before_imputation("mean", missing=50), "survey-bounds"),
        (lambda: sensitivity_before_imputation("mean", missing=50, observed=0), "imputation-number"),
        (lambda: sensitivity_before_imputation("mean", missing=-1, observed=1), "imputation-number"),
        (lambda: sensitivity_before_imputation("mean", missing=1, observed=1, width=-1), "imputation-number"),
        (lambda: sensitivity_before_imputation("editing across records", missing=1), "imputation-depends"),
        (lambda: records_touched("editing across records", missing=1), "imputation-depends"),
        (lambda: records_touched("mean", missing=1, copies=1), "imputation-number"),
        (lambda: loss_with_imputation("private parameters", analysis=1), "imputation-number"),
        (lambda: loss_with_imputation("given parameters", analysis=1, parameters=1), "imputation-number"),
        (lambda: loss_with_imputation("private parameters", analysis=0, parameters=1), "imputation-number"),
        (lambda: loss_with_imputation("private parameters", analysis="much", parameters=1), "imputation-number"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, kind):
    with pytest.raises(SurveyError) as refused:
        call()
    assert refused.value.kind == kind


def test_every_kind_says_what_is_known_and_the_refused_ones_what_is_open():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.does and kind.before and kind.after and kind.proved
        assert kind.open or kind.growth in ("none", "by share")
        assert kind.name in str(kind) and kind.before in str(kind)
