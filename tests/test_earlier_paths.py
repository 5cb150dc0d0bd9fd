"""Module paths of version 0.7 work for one more version, and say where to import from now."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from stirred._earlier_paths import NOW

SHOWN = {
    "stirred.audit.auditing": "audit_plan",
    "stirred.audit.exact": "exact_audit exact_audit_of",
    "stirred.audit.lower_bounds": "lower_bounds promise_result",
    "stirred.audit.noise_battery": "audit_noise",
    "stirred.audit.noise_laws": "gaussian laplace integers coin",
    "stirred.audit.one_run": "one_run_bound",
    "stirred.audit.survey_battery": "audit_survey plan_program",
    "stirred.audit.swap_battery": "audit_swap plan_program",
    "stirred.audit.topdown_battery": "audit_topdown plan_program",
    "stirred.reports.paper_figures": "save_for_paper",
    "stirred.reports.releasing": "release verify",
    "stirred.reproduce.page": "write",
    "stirred.semantics.dependence": (
        "covariance dependency_component markov_boundary pair_likelihood_ratio posterior_factor "
        "prior_to_posterior_bounds"
    ),
    "stirred.semantics.deployment_picture": "deployment_picture",
    "stirred.semantics.guarantee_lines": "guarantee_line",
    "stirred.semantics.prices": "ResponseGame in_base linear_budget price",
    "stirred.semantics.response_summary": "summarise_responses",
    "stirred.spec.accounts": "account one_axis",
    "stirred.spec.allocations": "allocation",
    "stirred.spec.deployments": "deployment",
    "stirred.spec.finite": "randomised_response",
    "stirred.spec.swap_trade_off": "as_trade_off",
    "stirred.study": "Asked Study StudyData StudyPlan from_files from_flat generated read_study run_study study",
    "stirred.study.swappers": "RecordSwap Targeted2010 Simulated Swapper",
    "stirred.survey.facts": "Bounds SurveyFacts Units",
    "stirred.survey.imputation_accounting": (
        "imputation_kind loss_with_imputation records_touched sensitivity_before_imputation"
    ),
    "stirred.survey.linear_imputing": "Lattice estimate_linear impute_linear",
    "stirred.survey.listed": "ListedSurvey",
    "stirred.survey.sensitivity": "Estimator sensitivity",
    "stirred.survey.settings": "setting",
    "stirred.swap.practice_laws": "in_rounds",
    "stirred.swap.practices": "PRACTICES",
    "stirred.topdown.nmf_reading": "open_noisy_measurements",
}
"""By module, the names that pages of version 0.7 import from it or name in it."""


@pytest.mark.parametrize("earlier", NOW)
def test_an_earlier_path_gives_the_same_names_and_warns_where_it_is_imported(earlier, monkeypatch):
    for name in (one for one in list(sys.modules) if one in NOW):
        monkeypatch.delitem(sys.modules, name)
    found: dict = {}
    names = SHOWN.get(earlier, "").split()
    lines = "\n".join([f"import {earlier}", *(f"from {earlier} import {name}" for name in names)])
    with pytest.warns(DeprecationWarning, match=f"^{earlier} has moved: import from {NOW[earlier]}$") as warned:
        exec(compile(lines, "of a reader", "exec"), found)
    assert {one.filename for one in warned} == {"of a reader"}
    now = import_module(NOW[earlier])
    for name in names:
        assert found[name] is getattr(now, name)


def test_a_plan_of_surveys_is_found_where_it_was():
    with pytest.warns(DeprecationWarning, match="import SurveyPlan from stirred.survey.plan.fields"):
        from stirred.survey.plan import SurveyPlan  # noqa: F401


def test_every_path_shown_is_in_the_table_and_none_hides_a_module_that_stands():
    assert set(SHOWN) <= set(NOW)
    code = (
        "import sys, stirred\nfrom importlib.util import find_spec\nsys.meta_path.pop()\n"
        "print([name for name in sys.argv[1:] if find_spec(name)])"
    )
    flat = [name for name in NOW if name.count(".") == 1 or name.rpartition(".")[0] not in NOW]
    ended = subprocess.run([sys.executable, "-c", code, *flat], check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "[]"


def test_a_path_that_never_was_is_no_module():
    with warnings.catch_warnings(), pytest.raises(ModuleNotFoundError, match=r"stirred\.audit\.nonsense"):
        warnings.simplefilter("ignore", DeprecationWarning)
        import_module("stirred.audit.nonsense")
