"""Every folder of ``tests/bad`` is a plan and its files that must be refused.

The folder's name is the kind of error (a colon becomes a dash), after ``--`` comes what sets the case apart. The first
line of its plan holds words that the message must contain. Cells hold a marker, which no message may quote.
"""

from __future__ import annotations

import ast
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from stirred import errors
from stirred.survey.checking.plan_check import check as survey_check
from stirred.survey.drawing import draw as survey_draw
from stirred.survey.plan.fields import SurveyPlan
from stirred.swap.checking.plan_check import check
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan

BAD = Path(__file__).parent / "bad"
MARKER = "SECRET-7731"
STOPS = (
    "changes-text-",
    "determines-",
    "distinct-",
    "tells-",
    "undone-",
    "few-change",
    "many-unchangeable",
    "many-alone",
    "nothing-can-change",
)
CASES = sorted(path.name for path in BAD.iterdir())
REFUSED = [name for name in CASES if not name.startswith(STOPS)]
STOPPED = [name for name in CASES if name.startswith(STOPS)]
ALLOWABLE = [name for name in STOPPED if name != "nothing-can-change"]

ELSEWHERE = {
    "unique-on-sums": "tests/swap/test_in_place.py",
    "appendix-in-a-release": "tests/reports/test_appendix.py",
    "appendix-is-the-report": "tests/reports/test_appendix.py",
    "appendix-of-nothing": "tests/reports/test_appendix.py",
    "appendix-of-one-release": "tests/reports/test_appendix.py",
    "appendix-other-data": "tests/reports/test_appendix.py",
    "appendix-other-plan": "tests/reports/test_appendix.py",
    "appendix-without-file": "tests/reports/test_appendix.py",
    "check-code": "tests/releases/test_as_checked.py",
    "drawn-before": "tests/topdown/test_topdown_release.py",
    "not-as-checked": "tests/releases/test_as_checked.py",
    "undone-by-releases": "tests/swap/test_undoing.py",
    "not-all-compared": "tests/releases/test_signatures.py",
    "not-read": "tests/releases/test_release_folder.py",
    "option-needs": "tests/cli/test_cli_figures.py",
    "report-needs-data": "tests/reports/test_report_page.py",
    "report-of-nothing": "tests/reports/test_report_page.py",
    "report-option": "tests/reports/test_report_page.py",
    "bad-target": "tests/semantics/test_targets.py",
    "no-targets": "tests/semantics/test_targets.py",
    "target-not-for": "tests/semantics/test_inverse.py",
    "target-out-of-reach": "tests/semantics/test_inverse.py",
    "calibration-option": "tests/topdown/test_topdown_budget.py",
    "target-not-measured": "tests/topdown/test_topdown_budget.py",
    "targets-disagree": "tests/topdown/test_topdown_budget.py",
    "moved-to-calibrate": "tests/cli/test_cli_calibrate.py",
    "audit-measurements": "tests/lab/audit/test_topdown_audit.py",
    "draws-column": "tests/lab/audit/test_cli_audit_noise.py",
    "draws-command": "tests/lab/audit/test_cli_audit_noise.py",
    "draws-line": "tests/lab/audit/test_cli_audit_noise.py",
    "draws-not-numbers": "tests/lab/audit/test_cli_audit_noise.py",
    "mechanism-taken": "tests/test_mechanisms.py",
    "not-a-plan": "tests/test_mechanisms.py",
    "not-offered": "tests/test_mechanisms.py",
    "unknown-mechanism": "tests/test_mechanisms.py",
    "audit-runs": "tests/lab/audit/test_lower_bounds.py",
    "audit-no-table": "tests/lab/audit/test_swap_audit.py",
    "audit-of-plan": "tests/lab/audit/test_swap_audit.py",
    "audit-question": "tests/lab/audit/test_swap_audit.py",
    "bad-candidate": "an option of check",
    "bad-pair": "tests/swap/test_swap_pairs.py",
    "nothing-to-draw": "an option of check",
    "stratum-too-large": "tests/swap/test_stratum_laws.py",
    "call-does-not-fit": "tests/test_wrong_arguments.py",
    "decimal-comma": "tests/spec/test_loading.py",
    "cannot-label": "tests/swap/test_labelled_files.py",
    "flat-unclear": "tests/swap/test_flat.py",
    "empty-folder": "tests/tables/test_headers.py",
    "line-too-long": "tests/tables/test_headers.py",
    "index-column": "tests/test_wrong_arguments.py",
    "number-alone": "tests/spec/test_loading.py",
    "deployment-without-guarantee": "tests/spec/test_accounts.py",
    "several-deployments": "tests/spec/test_loading.py",
    "wrong-argument": "tests/test_wrong_arguments.py",
    "cannot-sign": "tests/releases/test_signatures.py",
    "no-signers": "tests/releases/test_signatures.py",
    "no-signing-program": "tests/releases/test_signatures.py",
    "cannot-write": "tests/releases/test_refusals.py",
    "file-changed": "tests/releases/test_refusals.py",
    "invariants-broken": "a fault in stirred",
    "needs-extra": "a missing package",
    "needs-posix": "tests/releases/test_folder.py",
    "unknown-page": "tests/cli/test_cli_docs.py",
    "not-a-release": "tests/cli/test_cli.py",
    "not-a-table": "frames in memory",
    "folder-inside-another": "tests/releases/test_releasing.py",
    "too-many-rows-stated": "tests/releases/test_release_folder.py",
    "unreadable-release": "tests/releases/test_releasing.py",
    "ledger-not-verified": "tests/cli/test_cli_ledger.py",
    "one-folder-for-both": "tests/releases/test_refusals.py",
    "output-exists": "tests/releases/test_refusals.py",
    "output-parent-missing": "tests/releases/test_refusals.py",
    "plan-not-upgraded": "tests/releases/test_upgrading.py",
    "plan-in-json": "below: a plan in JSON",
    "plan-unreadable": "below: there is no plan",
    "seeded-release": "reachable from Python only",
    "unknown-table": "tests/cli/test_cli_release.py",
    "too-many-records": "four thousand million rows",
    "too-many-columns": "tests/tables/test_bounds_of_tables.py",
    "more-rows-than-expected": "tests/tables/test_bounds_of_tables.py",
    "time-out-of-range": "tests/tables/test_bounds_of_tables.py",
    "unknown-table-column": "tests/cli/test_cli.py",
    "denominators-near-zero": "tests/estimates/test_ratios.py",
    "swap-mixes-too-much": "tests/swap/test_estimating.py",
    "regression-not-valid": "tests/swap/test_regressing.py",
    "regression-not-determined": "tests/swap/test_regression.py",
    "all-empty-": "tests/survey/test_survey_units.py",
    "everybody-responds": "tests/survey/test_survey_units.py",
    "fewer-selected": "tests/survey/test_survey_units.py",
    "largest-cluster": "tests/survey/test_survey_units.py",
    "several-rows-": "tests/survey/test_survey_units.py",
    "unit-is-not-the-row": "tests/survey/test_survey_units.py",
    "weights-population": "tests/survey/test_survey_units.py",
    "survey-denominator": "tests/survey/test_sensitivity.py",
    "survey-sampling-depends": "tests/survey/test_sensitivity.py",
    "survey-setting": "tests/survey/test_settings.py",
    "survey-unit-twice": "tests/survey/test_sensitivity.py",
    "no-amplification": "tests/survey/test_amplification.py",
    "not-a-listed-design": "tests/survey/test_amplification.py",
    "samples-depend": "tests/survey/test_amplification.py",
    "too-many-samples": "tests/survey/test_amplification.py",
    "estimates-of-rates": "tests/swap/test_regressing.py",
    "estimates-of-rounds": "tests/swap/test_estimating.py",
    "too-large-to-simulate": "tests/swap/test_simulated_estimates.py",
    "unsupported-type": "below: not in a CSV file",
    "bad-block": "tests/spec/test_blocks.py",
    "bad-number": "tests/spec/test_blocks.py",
    "cannot-evaluate": "tests/spec/test_blocks.py",
    "different-datasets": "tests/spec/test_finite.py",
    "not-a-mechanism": "tests/spec/test_finite.py",
    "not-a-partition": "tests/spec/test_finite.py",
    "not-listed": "tests/spec/test_finite.py",
    "different-domains": "tests/spec/test_algebra.py",
    "no-rule": "tests/spec/test_algebra.py",
    "not-a-specification": "tests/spec/test_json_format.py",
    "not-an-allocation": "tests/semantics/test_concerns.py",
    "allocation-does-not-fit": "tests/semantics/test_explaining.py",
    "nothing-to-look-up": "tests/semantics/test_explaining.py",
    "allocation-unit": "tests/semantics/test_explaining.py",
    "map-join": "tests/estimates/test_map_joins.py",
    "places-file": "tests/estimates/test_listed_places.py",
    "places-twice": "tests/estimates/test_listed_places.py",
    "places-unknown": "tests/estimates/test_listed_places.py",
    "noisy-column": "tests/topdown/test_noisy_measurements.py",
    "noisy-file": "tests/topdown/test_noisy_measurements.py",
    "noisy-folder": "tests/topdown/test_noisy_measurements.py",
    "noisy-question": "tests/topdown/test_noisy_measurements.py",
    "not-exportable": "tests/topdown/test_noisy_measurements.py",
    "topdown-plan": "tests/topdown/test_topdown_plan.py",
    "margin-plan": "tests/margins/test_one_table.py",
    "measured-margin": "tests/margins/test_one_table.py",
    "shares-question": "tests/margins/test_table_shares.py",
    "relation-unsure": "tests/topdown/test_relations.py",
    "relations-circle": "tests/topdown/test_relations.py",
    "topdown-crossing": "tests/topdown/test_topdown_release.py",
    "work-folder": "tests/topdown/test_topdown_release.py",
    "topdown-earlier": "tests/topdown/test_topdown_release.py",
    "topdown-memory": "tests/cli/test_cli_topdown.py",
    "option-not-for": "tests/cli/test_cli_topdown.py",
    "topdown-geography": "tests/topdown/test_counting.py",
    "topdown-place": "tests/topdown/test_counting.py",
    "topdown-category": "tests/topdown/test_counting.py",
    "topdown-count": "tests/topdown/test_counting.py",
    "topdown-zero": "tests/topdown/test_counting.py",
    "topdown-contradiction": "tests/topdown/test_constraints.py",
    "topdown-dictionary": "tests/topdown/test_topdown_draft.py",
    "topdown-infeasible": "tests/topdown/test_fitting.py",
    "block-twice": "tests/margins/test_target_spines.py",
    "spine-question": "tests/margins/test_target_spines.py",
    "bad-definition": "tests/lab/definitions/test_definitions.py",
    "bad-concern": "tests/semantics/test_concerns.py",
    "not-post-processing": "tests/spec/test_algebra.py",
    "specification-version": "tests/spec/test_json_format.py",
    "strange-datasets": "tests/spec/test_blocks.py",
    "unknown-output-premetric": "tests/spec/test_blocks.py",
    "curves-not-comparable": "tests/loss/test_curves.py",
    "grid-too-fine": "tests/loss/test_composition.py",
    "distances-do-not-fit": "tests/loss/test_pairs.py",
    "not-a-curve": "tests/loss/test_curves.py",
    "not-a-distribution": "tests/loss/test_divergences.py",
    "outputs-differ": "tests/loss/test_divergences.py",
    "parameter-not-used": "tests/loss/test_pairs.py",
    "parameter-out-of-range": "tests/loss/test_conversions.py",
    "unknown-choice": "tests/loss/test_pairs.py",
    "nothing-to-compose": "tests/lab/definitions/test_composition_filters.py",
    "curves-do-not-compose": "tests/loss/test_tradeoffs.py",
    "too-many-outputs": "tests/loss/test_tradeoff_rules.py",
    "filter-exceeded": "tests/lab/definitions/test_composition_filters.py",
    "shares-do-not-add-up": "tests/spec/test_allocations.py",
    "bad-shorthand": "tests/spec/test_loading.py",
    "not-a-registry-record": "tests/spec/test_registry.py",
    "not-for-registry": "tests/spec/test_registry.py",
    "nothing-to-load": "tests/spec/test_loading.py",
    "registry-contradicts": "tests/spec/test_registry.py",
    "registry-details-missing": "tests/spec/test_registry.py",
    "registry-field": "tests/spec/test_registry.py",
    "registry-without-guarantee": "tests/spec/test_registry.py",
    "unknown-deployment": "tests/spec/test_deployments.py",
    "ledger-address": "tests/releases/test_ledger_server.py",
    "ledger-bad-successor": "tests/releases/test_withdrawals.py",
    "ledger-no-reason": "tests/releases/test_withdrawals.py",
    "ledger-not-recorded": "tests/releases/test_withdrawals.py",
    "ledger-nothing-to-withdraw": "tests/releases/test_withdrawals.py",
    "ledger-owner-first": "tests/releases/test_withdrawals.py",
    "ledger-unknown-withdrawal": "tests/releases/test_withdrawals.py",
    "ledger-withdrawn-already": "tests/releases/test_withdrawals.py",
    "no-withdrawn-list": "tests/releases/test_withdrawals.py",
    "withdrawn-not-stated": "tests/releases/test_withdrawals.py",
    "ledger-bad-nonce": "tests/releases/test_ledger.py",
    "ledger-bad-seal": "tests/releases/test_ledger.py",
    "ledger-counted-already": "tests/releases/test_ledger.py",
    "ledger-damaged": "tests/releases/test_ledger_file.py",
    "ledger-entry-unreadable": "tests/releases/test_ledger.py",
    "ledger-exists": "tests/releases/test_ledger_file.py",
    "ledger-limit-dataset": "tests/releases/test_ledger.py",
    "ledger-locked": "tests/releases/test_ledger_file.py",
    "ledger-marked": "tests/releases/test_ledger.py",
    "ledger-missing": "tests/releases/test_ledger_file.py",
    "ledger-needs-driver": "tests/releases/test_ledger_server.py",
    "ledger-no-total": "tests/releases/test_ledger.py",
    "ledger-not-derived": "tests/releases/test_ledger.py",
    "ledger-not-kept": "tests/releases/test_ledger.py",
    "ledger-note-too-long": "tests/releases/test_ledger.py",
    "ledger-role": "tests/releases/test_ledger_server.py",
    "ledger-same-draw": "tests/releases/test_ledger.py",
    "ledger-server": "tests/releases/test_ledger_server.py",
    "ledger-unknown": "tests/releases/test_ledger.py",
    "ledger-unreachable": "tests/releases/test_ledger_server.py",
    "ledger-unsafe-server": "tests/releases/test_ledger_server.py",
    "ledger-without-locks": "tests/releases/test_ledger_damage.py",
    "ledger-not-covered": "tests/releases/test_ledger.py",
    "ledger-other-dataset": "tests/releases/test_ledger.py",
    "ledger-other-release": "tests/releases/test_ledger.py",
    "ledger-over-limit": "tests/releases/test_ledger.py",
    "ledger-unknown-entry": "tests/releases/test_ledger.py",
    "ledger-unusable": "tests/releases/test_ledger_file.py",
    "ledger-version": "tests/releases/test_ledger_file.py",
    "not-a-ledger": "tests/releases/test_ledger_file.py",
    "noise-not-a-number": "tests/noise/test_noise_refusals.py",
    "noise-out-of-range": "tests/noise/test_noise_refusals.py",
    "noise-rows": "tests/noise/test_noise_refusals.py",
    "noise-size": "tests/noise/test_noise_refusals.py",
    "noise-too-wide": "tests/noise/test_noise_refusals.py",
    "response-values": "tests/noise/test_noise_refusals.py",
    "not-a-measure": "tests/limits/test_limits_refusals.py",
    "measures-differ": "tests/limits/test_limits_refusals.py",
    "not-a-density": "tests/limits/test_limits_refusals.py",
    "empty-interval": "tests/limits/test_limits_refusals.py",
    "impossible-condition": "tests/limits/test_limits_refusals.py",
    "too-few-accepted": "tests/lab/limits/test_limits_posteriors.py",
    "impossible-output": "tests/lab/limits/test_limits_posteriors.py",
    "posterior-needs": "tests/lab/limits/test_limits_posteriors.py",
    "not-a-prior": "tests/lab/limits/test_limits_posteriors.py",
    "too-many-points": "tests/limits/test_limits_refusals.py",
    "not-a-graph": "tests/limits/test_limits_refusals.py",
    "not-in-graph": "tests/limits/test_limits_refusals.py",
    "not-connected": "tests/limits/test_limits_refusals.py",
    "analysis-does-not-fit": "tests/limits/test_limits_refusals.py",
    "names-collide": "tests/limits/test_limits_refusals.py",
    "secrets-overlap": "tests/limits/test_limits_refusals.py",
    "impossible-secret": "tests/limits/test_limits_refusals.py",
    "pair-never-compared": "tests/limits/test_limits_refusals.py",
    "secrets-do-not-divide": "tests/limits/test_limits_refusals.py",
    "estimate-question": "tests/estimates/test_measured_release.py",
    "estimate-too-wide": "tests/estimates/test_measured_release.py",
    "invariants-disagree": "tests/estimates/test_least_squares.py",
    "measurements-do-not-fit": "tests/estimates/test_measured_release.py",
    "not-estimable": "tests/estimates/test_measured_release.py",
    "not-measurements": "tests/estimates/test_measured_release.py",
    "unknown-geounit": "tests/estimates/test_measured_release.py",
    "clusters-cross-strata": "tests/survey/test_survey_refusals.py",
    "design-choice": "tests/survey/test_survey_refusals.py",
    "design-number": "tests/survey/test_survey_refusals.py",
    "frame-column": "tests/survey/test_survey_refusals.py",
    "frame-lacks": "tests/survey/test_survey_refusals.py",
    "frame-units": "tests/survey/test_survey_refusals.py",
    "parts-do-not-fit": "tests/survey/test_survey_refusals.py",
    "sample-too-small": "tests/survey/test_survey_allocations.py",
    "samples-not-listed": "tests/survey/test_survey_refusals.py",
    "single-unit-strata": "tests/survey/test_survey_refusals.py",
    "size-not-positive": "tests/survey/test_survey_refusals.py",
    "size-too-large": "tests/survey/test_survey_refusals.py",
    "sizes-too-fine": "tests/survey/test_survey_refusals.py",
    "strata-without-number": "tests/survey/test_survey_allocations.py",
    "stratum-too-small": "tests/survey/test_survey_allocations.py",
    "too-many-pairs": "tests/survey/test_survey_refusals.py",
    "unknown-strata": "tests/survey/test_survey_refusals.py",
    "weights-do-not-fit": "tests/survey/test_survey_refusals.py",
    "calibration-not-reached": "tests/survey/test_public_totals.py",
    "calibration-totals": "tests/survey/test_public_totals.py",
    "imputation-codes": "tests/survey/test_survey_imputing.py",
    "imputation-kind": "tests/survey/test_survey_imputation.py",
    "imputation-number": "tests/survey/test_survey_imputation.py",
    "imputation-share": "tests/survey/test_survey_imputing.py",
    "imputation-too-large": "tests/survey/test_survey_imputing.py",
    "not-an-imputation-model": "tests/survey/test_survey_imputing.py",
    "survey-column": "tests/survey/test_replicated_standard_errors.py",
    "weight-facts": "tests/survey/test_survey_weight_trade.py",
    "weights-not-whole": "tests/survey/test_survey_weight_rules.py",
    "study-column": "tests/lab/study/test_study_file.py",
    "study-file": "tests/lab/study/test_study_file.py",
    "study-parameter": "tests/lab/study/test_targeted_swappers.py",
    "study-part": "tests/lab/study/test_study_file.py",
    "study-too-large": "tests/lab/study/test_study_estimates.py",
    "not-audited": "tests/lab/audit/test_worst_pairs.py",
    "nothing-released": "tests/lab/audit/test_traces.py",
    "nothing-to-compare": "tests/lab/audit/test_traces.py",
    "program-command": "tests/lab/audit/test_programs.py",
    "program-failed": "tests/lab/audit/test_programs.py",
    "program-hangs": "tests/lab/audit/test_programs.py",
    "program-not-callable": "tests/lab/audit/test_programs.py",
    "program-not-found": "tests/lab/audit/test_programs.py",
    "program-other-columns": "tests/lab/audit/test_programs.py",
    "program-wrote-no-table": "tests/lab/audit/test_programs.py",
    "program-wrote-nothing": "tests/lab/audit/test_programs.py",
}
"""Kinds of error that no plan with hand-written files can cause."""


@pytest.fixture
def folder(request, tmp_path) -> Path:
    """A copy of the case, so that whatever is written beside it is found."""
    return Path(shutil.copytree(BAD / request.param, tmp_path / "case"))


def words(folder: Path) -> str:
    first = (folder / "plan.toml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# says: ")
    return first.removeprefix("# says: ")


def kind_of(name: str) -> str:
    return name.split("--")[0]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden files included."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", REFUSED, indirect=True)
@pytest.mark.parametrize("verb", ["check", "release"])
def test_bad_input_is_refused_in_words_that_quote_no_cell(verb, folder, tmp_path, command):
    before = contents(tmp_path)
    out = ["--out", tmp_path / "out"] if verb == "release" else []
    ended = command(verb, folder / "plan.toml", *out)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("stirred: ")
    assert words(folder) in ended.err
    assert MARKER not in ended.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_raises_the_kind_it_is_named_after(name):
    plan = BAD / name / "plan.toml"
    survey = 'mechanism = "survey"' in plan.read_text(encoding="utf-8", errors="replace")
    for use in (survey_check, survey_draw) if survey else (check, draw):
        with pytest.raises(errors.StirredError) as refusal:
            use((SurveyPlan if survey else SwapPlan).from_toml(plan))
        assert refusal.value.kind == kind_of(name)
        assert refusal.value.__cause__ is None
        assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
        assert MARKER not in repr(refusal.value)


# -- stops ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", STOPPED, indirect=True)
def test_a_stop_ends_the_release_in_words_that_quote_no_cell(folder, tmp_path, command):
    before = contents(tmp_path)
    ended = command("release", folder / "plan.toml", "--out", tmp_path / "out")
    assert ended.code == 2
    assert ended.out == ""
    assert words(folder) in ended.err
    assert MARKER not in ended.err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("folder", STOPPED, indirect=True)
def test_a_check_says_what_would_stop_the_release(folder, tmp_path, command):
    before = contents(tmp_path)
    ended = command("check", folder / "plan.toml")
    assert ended.code == 2
    assert words(folder) in ended.said
    assert "A release of this plan would be refused because of what the lines with STOP say." in ended.out
    assert MARKER not in ended.said
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", STOPPED)
def test_a_stop_has_the_kind_it_is_named_after(name):
    plan = SwapPlan.from_toml(BAD / name / "plan.toml")
    with pytest.raises(errors.StoppedByCheck) as stop:
        draw(plan)
    assert stop.value.kind.replace(":", "-") == kind_of(name)
    assert [entry.kind for entry in check(plan).open_stops] == [stop.value.kind]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("folder", ALLOWABLE, indirect=True)
def test_a_stop_that_is_allowed_by_name_lets_the_release_pass_and_is_published_as_a_finding(folder, tmp_path, command):
    plan = folder / "plan.toml"
    stop = check(SwapPlan.from_toml(plan)).open_stops[0].kind
    assert command("check", plan, "--allow", stop).code == 0
    ended = command("release", plan, "--out", tmp_path / "out", "--allow", stop)
    assert ended.code == 0
    finding = f"allowed-{stop.replace(':', '-')}"
    assert f"finding {finding}" in ended.out
    assert finding in (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")
    assert command("verify", tmp_path / "out").code == 0


def test_allowing_one_stop_does_not_allow_another(tmp_path, command):
    plan = BAD / "determines-tract--alone" / "plan.toml"
    ended = command("release", plan, "--out", tmp_path / "out", "--allow", "determines:zone")
    assert ended.code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["determines-tract--alone"], indirect=True)
def test_eight_records_are_too_few_to_believe_that_a_column_determines_another(folder, command):
    data = folder / "households.csv"
    lines = data.read_text(encoding="utf-8").splitlines(keepends=True)
    data.write_text("".join(lines[:9]), encoding="utf-8")
    assert command("check", folder / "plan.toml").code == 0


@pytest.mark.parametrize("folder", ["rate-zero-or-one--zero", "rate-zero-or-one--one"], indirect=True)
def test_rates_zero_and_one_pass_when_allowed_and_say_that_epsilon_is_infinite(folder, tmp_path, command):
    plan, out = folder / "plan.toml", tmp_path / "out"
    assert check(SwapPlan.from_toml(plan, ["rate-zero-or-one"])).epsilon == math.inf
    checked = command("check", plan, "--allow", "rate-zero-or-one")
    assert checked.code == 0
    assert "epsilon infinite" in checked.said
    assert "FINDING rate-zero-or-one" in checked.out
    released = command("release", plan, "--out", out, "--allow", "rate-zero-or-one")
    assert released.code == 0
    assert "epsilon infinite" in released.out
    assert "finding rate-zero-or-one" in released.out
    assert command("verify", out).code == 0


# -- cases that hand-written files cannot show -----------------------------------------------------------------


def plan_for(tmp_path: Path, frame: pl.DataFrame) -> Path:
    frame.write_parquet(tmp_path / "data.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'stirred = 1\nmechanism = "swap"\nrate = 0.5\nmatch = ["size"]\nswap = ["county"]\nhold = ["tenure"]\n'
        '[input]\npath = "data.parquet"\n',
        encoding="utf-8",
    )
    return plan


def test_a_float_column_of_a_parquet_file_cannot_match(tmp_path, command):
    frame = pl.DataFrame({"size": [1.0, 1.0, 2.5], "county": ["a", "b", MARKER], "tenure": ["x", "y", "x"]})
    ended = command("release", plan_for(tmp_path, frame), "--out", tmp_path / "out")
    assert ended.code == 2
    assert "match variable 'size' is a floating-point number" in ended.err
    assert MARKER not in ended.said
    assert not (tmp_path / "out").exists()


def test_columns_of_lists_are_refused_by_type(tmp_path, command):
    frame = pl.DataFrame({"size": [1, 1], "county": ["a", "b"], "tenure": [[MARKER], ["x", "y"]]})
    ended = command("check", plan_for(tmp_path, frame))
    assert ended.code == 2
    assert "Column 'tenure' of table 'microdata' holds" in ended.err
    assert "cannot be released cell by cell" in ended.err
    assert MARKER not in ended.said


@pytest.mark.parametrize("name", ["nulls", "nulls--linked"])
def test_nulls_that_the_plan_declares_are_a_category(name, tmp_path):
    plan = SwapPlan.from_toml(BAD / name / "plan.toml")
    linked = tuple(table.model_copy(update={"nulls": ("job",)}) for table in plan.linked)
    allowed = plan.model_copy(update={"nulls": ("tenure",), "linked": linked})
    table, column = ("persons", "job") if linked else ("microdata", "tenure")
    assert draw(allowed).frame(table)[column].null_count == (2 if linked else 1)


def test_a_missing_plan_is_refused(tmp_path, command):
    ended = command("check", tmp_path / "plan.toml")
    assert ended.code == 2
    assert "There is no plan at" in ended.err
    assert "stirred init" in ended.err


# -- the cases themselves ------------------------------------------------------------------------------------


def test_every_kind_of_error_has_a_case():
    kinds = set()
    files = Path(errors.__file__).parents[1].rglob("*.py")
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name.endswith(("Error", "Check")) and isinstance(getattr(errors, name, None), type):
            first = node.args[0]
            if isinstance(first, ast.JoinedStr):  # "empty-{role}", "determines:{column}"
                first = first.values[0]
            assert isinstance(first, ast.Constant)
            kinds.add(first.value.replace(":", "-"))
    shown = {kind for kind in kinds if any(name.startswith(kind) for name in CASES)}
    assert kinds - shown - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) <= kinds - shown


def test_every_case_holds_the_marker_in_a_cell():
    # Where there are no cells there is nothing to quote.
    without = {"empty-file", "empty-file--header-only", "empty-file--survey-header-only"}
    for name in set(CASES) - without:
        files = [path for path in (BAD / name).rglob("*") if path.is_file() and path.name != "plan.toml"]
        assert any(MARKER.encode() in path.read_bytes() for path in files), name


def test_a_plan_in_json_is_told_that_plans_are_toml(tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text('\n{"stirred": 1, "mechanism": "swap"}')
    with pytest.raises(errors.PlanError, match="is JSON, and a plan is written in TOML"):
        SwapPlan.from_toml(plan)


def test_a_plan_with_a_byte_order_mark_is_read(tmp_path):
    text = (BAD / "few-change" / "plan.toml").read_text()
    (tmp_path / "plain.toml").write_text(text)
    (tmp_path / "marked.toml").write_text(text, encoding="utf-8-sig")
    assert SwapPlan.from_toml(tmp_path / "marked.toml") == SwapPlan.from_toml(tmp_path / "plain.toml")
