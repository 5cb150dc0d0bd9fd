"""Errors about surveys: what sampling does not give, and questions about samples that have no answer."""

from __future__ import annotations

from stirred.errors.kinds import StirredError


class SurveyError(StirredError):
    """A question about a survey has no answer, or one that nobody has proved."""


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
