"""Errors about calibration: targets that cannot be read, that a mechanism does not know, or that nothing reaches."""

from __future__ import annotations

from stirred.errors.kinds import PlanError, one_line

_PAGE = "docs/calibrate.md has examples (stirred docs calibrate)."


def bad_target(text: str, problem: str) -> PlanError:
    return PlanError("bad-target", f"The target {one_line(text, 200)!r} cannot be read: {problem}.", _PAGE)


def no_targets() -> PlanError:
    return PlanError(
        "no-targets",
        "No limit was given to calibrate for.",
        "Give at least one --target, such as 'power at 5% <= 20%' or 'error of total at county <= 5'. " + _PAGE,
    )


def target_not_for(text: str, what: str, instead: str) -> PlanError:
    """``what`` names what was to be calibrated, ``instead`` says what can be asked of it."""
    return PlanError(
        "target-not-for", f"The target {one_line(text, 200)!r} cannot be asked of {what}.", f"{instead} {_PAGE}"
    )


def target_not_measured(text: str, table: str) -> PlanError:
    return PlanError(
        "target-not-measured",
        f"The target {one_line(text, 200)!r} can never be met: no query that the plan measures for '{table}' tells "
        "what it asks for.",
        "Add a query to the plan that has these attributes, with a share at that level or below it.",
    )


def out_of_reach(text: str, why: str, remedy: str) -> PlanError:
    return PlanError("target-out-of-reach", f"The target {one_line(text, 200)!r} cannot be met: {why}.", remedy)


def targets_disagree(why: str, remedy: str) -> PlanError:
    return PlanError("targets-disagree", f"The targets cannot be met together: {why}.", remedy)


def calibration_option(option: str, must: str) -> PlanError:
    return PlanError("calibration-option", f"The option {option} {must}.", _PAGE)


def moved_to_calibrate(option: str, target: str) -> PlanError:
    """An option of another command that ``stirred calibrate`` has taken over."""
    return PlanError(
        "moved-to-calibrate",
        f"{option} is no option of this command any more: stirred calibrate answers it.",
        f"Type: stirred calibrate PLAN --target {target!r}. " + _PAGE,
    )
