"""Tests of the laboratory run in ``make test-slow``, but for some fast ones, which ``make test`` runs too."""

from __future__ import annotations

from pathlib import Path

import pytest

from limit_cases import rng  # noqa: F401

FAST = {
    "test_attackers",
    "test_beliefs",
    "test_definitions",
    "test_dependence",
    "test_exact_loss",
    "test_laboratory",
    "test_limits_pufferfish_spec",
    "test_limits_quadrature",
    "test_noise_audit",
    "test_swap_practices",
    "test_prices",
    "test_processing",
    "test_programs",
    "test_results",
    "test_study_file",
    "test_study_estimates",
    "test_survey_designs",
    "test_swap_questions_laws",
    "test_swap_enumeration",
    "test_swap_figures",
    "test_targeted_swappers",
}
"""Modules whose tests run in ``make test`` too."""
WITNESSES = {
    "test_a_mechanism_without_an_audit_is_refused",
    "test_a_list_of_thetas_is_a_finite_sum",
    "test_a_program_that_forgets_a_table_is_told_so",
    "test_a_program_that_measures_nothing_is_wrong_and_the_audit_ends",
    "test_a_promise_that_is_broken_is_found_and_one_that_is_kept_is_not",
    "test_a_pure_filter_holds_exactly_on_every_run_of_an_adaptive_mechanism",
    "test_a_value_agrees_if_it_stands_to_the_printed_digits_as_it_should",
    "test_an_order_that_betrays_the_input_is_found",
    "test_an_invariant_counts_the_rows_that_satisfy_its_condition",
    "test_bounds_and_p_values_decide_alike",
    "test_bounds_are_above_the_exact_loss_no_more_often_than_stated",
    "test_counterexamples_are_as_small_as_they_can_be",
    "test_counts_of_millions_are_handled",
    "test_definition_c_4_1_distances_are_those_of_events",
    "test_ids_that_survive_are_found",
    "test_large_frames_are_drawn_from",
    "test_lemma_5_3_4_the_interval_is_the_ball_of_the_multiplicative_distance",
    "test_mechanisms_give_their_pairs",
    "test_missing_sums_and_values_off_the_lattice_are_found",
    "test_pure_loss_is_exact_within_a_family",
    "test_rates_by_risk_have_the_law_of_a_stratum_that_is_selected_afresh",
    "test_reference_integers_are_uniform",
    "test_rules_and_strata_are_those_of_a_release",
    "test_section_6_4_5_the_bound_holds_at_hamming_distance_one_and_not_beyond",
    "test_tables_that_are_kept_have_no_error",
    "test_the_hockey_stick_of_laplace_noise",
    "test_the_power_is_that_of_the_known_laws",
    "test_theorem_5_5_1_and_corollary_5_5_2_every_test_has_a_power_in_the_band",
    "test_theorem_7_3_by_its_formula",
    "test_theorem_5_8_6_a_test_of_level_one_in_twenty",
    "test_what_a_text_betrays_is_found",
    "test_what_leaves_nothing_to_chance_is_found_for_certain",
}
"""Tests of other modules that run there too. All of them take half a minute of processor time."""
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fast = item.path.stem in FAST or getattr(item, "originalname", "") in WITNESSES
        if HERE in item.path.parents and not fast:
            item.add_marker(pytest.mark.slow)
