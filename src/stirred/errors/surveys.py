"""Errors about surveys: facts that do not fit together, what sampling does not give, and what nobody has proved."""

from __future__ import annotations

from stirred.errors.kinds import StirredError


class SurveyError(StirredError):
    """A question about a survey that has no answer, or whose answer is not known."""


def survey_fact(what: str, must: str) -> SurveyError:
    return SurveyError("survey-fact", f"{what} {must}.", "Correct what is said about the survey.")


def no_such_setting(starts: str, held_fixed: str) -> SurveyError:
    return SurveyError(
        "survey-setting",
        f"None of the ten settings starts at the {starts} and holds the {held_fixed} fixed.",
        "A mechanism starts at the population, frame, target sample or responding sample, and holds fixed a stage "
        "before that one, or nothing.",
    )


def survey_bounds_missing(what: str) -> SurveyError:
    return SurveyError(
        "survey-bounds",
        f"The sensitivity needs {what}.",
        "State it from public knowledge; read from the confidential data it would itself reveal something.",
    )


def weights_unbounded() -> SurveyError:
    return SurveyError(
        "survey-weights",
        "Final weights change with every record, since nonresponse adjustment and calibration look at all of them; how "
        "much is not known (Table 6.2).",
        "Cut the weights at published limits and say so (weights_cut_by_rule), or use the design weights.",
    )


def sample_not_followed(level: str) -> SurveyError:
    return SurveyError(
        "survey-sampling-depends",
        f"At the level of the {level}, changing one record may change who is sampled, so that no bound on the estimate "
        "is known.",
        "Start the mechanism at the target sample, or use a design that one record does not change.",
    )


def counted_twice() -> SurveyError:
    return SurveyError(
        "survey-unit-twice",
        "A unit may stand in the sample more than once, and the sensitivities here are for one record per unit.",
        "Sample without replacement, or merge the records of a unit.",
    )


def denominator_may_be_zero(what: str) -> SurveyError:
    return SurveyError(
        "survey-denominator",
        f"The sensitivity is not bounded, since {what}.",
        "Publish numerator and denominator each with noise of its own, or state a positive lower bound.",
    )


def no_amplification(design: str, why: str) -> SurveyError:
    return SurveyError(
        "no-amplification",
        f"Sampling does not lower the privacy loss here ({design}): {why}.",
        "Count the full loss of the mechanism on the sample.",
    )


def samples_depend(how: str, why: str) -> SurveyError:
    return SurveyError(
        "samples-depend",
        f"The losses of mechanisms on {how} cannot be added after sampling has lowered them: {why}.",
        "Add the losses on the samples themselves, as if nothing had been sampled: that always holds.",
    )


def not_a_listed_design(problem: str) -> SurveyError:
    return SurveyError(
        "not-a-listed-design",
        f"This list of samples cannot be used: {problem}.",
        "Give every possible sample once, as a tuple of the numbers of its units, with its probability.",
    )


def too_many_samples(found: int, most: int) -> SurveyError:
    return SurveyError(
        "too-many-samples",
        f"Listing everything would take about {found:,} steps; {most:,} are the most.",
        "Ask about a smaller frame or fewer values; the bounds themselves need no list.",
    )
