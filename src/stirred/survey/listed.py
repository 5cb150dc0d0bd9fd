"""A survey whose populations, frames, samples and responding samples are all listed, to try the settings on.

It holds the primitive multiverses of Definition 6.3.2 and decides by enumeration whether a flavor is population-,
frame- or sample-invariant (Definition 6.3.3). Datasets are named; distances between them are given.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stirred import errors
from stirred.spec import (
    Answer,
    Domain,
    Flavor,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    Specification,
    coarsens,
    completed,
)
from stirred.survey.pipeline import LEVELS
from stirred.survey.settings import Setting


@dataclass(frozen=True)
class ListedSurvey:
    """Which frames each population could give, which samples each frame, and which responding samples each sample.

    >>> survey = ListedSurvey({"p": ("f",)}, {"f": ("ab", "ac")}, {"ab": ("a", "ab"), "ac": ("a", "ac")})
    >>> survey.universes("responding sample", "target sample")
    (('a', 'ab'), ('a', 'ac'))
    """

    frames: Mapping[str, tuple[str, ...]]
    samples: Mapping[str, tuple[str, ...]]
    responding: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        steps = (self.frames, self.samples, self.responding)
        for before, after in itertools.pairwise(steps):
            made = {name for names in before.values() for name in names}
            if made != set(after):
                raise errors.survey_fact("A listed survey", "says for each dataset what is made of it")

    def datasets(self, level: str) -> tuple[str, ...]:
        """All datasets that are possible at a level (Definition 6.3.1)."""
        found = tuple(self.frames)
        for step in (self.frames, self.samples, self.responding)[: LEVELS.index(level)]:
            found = tuple(dict.fromkeys(name for one in found for name in step[one]))
        return found

    def universes(self, level: str, given: str = "") -> tuple[tuple[str, ...], ...]:
        """For each dataset of an earlier stage, those of the level that can come from it (Definition 6.3.2)."""
        if not given:
            return (self.datasets(level),)
        steps = (self.frames, self.samples, self.responding)[LEVELS.index(given) : LEVELS.index(level)]
        found = []
        for start in self.datasets(given):
            reached: tuple[str, ...] = (start,)
            for step in steps:
                reached = tuple(dict.fromkeys(name for one in reached for name in step[one]))
            found.append(reached)
        return tuple(found)

    def specification(
        self, setting: Setting, distances: Mapping[tuple[str, str], Any], epsilon: Any = 1
    ) -> Specification:
        """The guarantee of a setting in which as many datasets are compared as the setting allows."""
        flavor = Flavor(
            Domain(f"listed datasets: {setting.level}", datasets=self.datasets(setting.level)),
            Multiverse(universes=self.universes(setting.level, setting.fixed_through)),
            InputPremetric.table(distances),
            OutputPremetric("multiplicative"),
        )
        return flavor.at(epsilon)

    def is_invariant(self, specification: Specification, setting: Setting) -> Answer:
        """Whether compared datasets always come from one dataset of the stage that a setting holds fixed."""
        primitive = Multiverse(universes=self.universes(setting.level, setting.fixed_through))
        coarser = replace(specification, multiverse=primitive, budget=replace(specification.budget, by_universe=()))
        return coarsens(coarser, completed(specification))
