"""The plan of a survey release: where the guarantee starts, bounds and lattices, what is measured and published.

A plan is public and states public facts only. What is released are weighted sums with exact noise, one for each cell of
each query; means, shares, ratios, quantiles and calibrated totals are computed from these sums afterwards and cost
nothing. Shares of the budget are fractions that add up to exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from stirred import errors
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.releases.plans import MOST_SECTIONS, InputSection, Names, Plan, Unit
from stirred.survey.plan.problems import require_sound
from stirred.survey.plan.sections import (
    AttributeSection,
    CalibrationSection,
    DesignSection,
    ImputationSection,
    Number,
    PublishSection,
    QuerySection,
    RecodeSection,
    SampleSection,
    VariableSection,
    WeightsSection,
    to_fill_in,
)
from stirred.survey.plan.settings import Change, Pipeline
from stirred.survey.weights.rules import WeightRule

Start = Literal["target sample", "responding sample", "edited and imputed data", "weights"]
Fixed = Literal["", "population", "frame", "target sample"]
_Section = TypeVar("_Section", VariableSection, AttributeSection, CalibrationSection, PublishSection)


class SurveyPlan(Plan):
    """The plan of a survey release. Frozen; docs/surveys.md explains every field.

    Parameters
    ----------
    row, unit
        What one row of the file is, and what is protected: the same, such as ``person``. Without ``row`` the guarantee
        holds if each row is one whole unit.
    starts, holds_fixed
        The stage of the survey whose records are protected, and the last stage before it that is held fixed.
    change
        How a unit's record may change: ``unit``, another unit stands in its place; ``value``, the same unit gives other
        answers. The first promises more.
    epsilon or rho
        The budget: ``epsilon`` with Laplace noise, ``rho`` with Gaussian noise.
    weights, variables, attributes, recodes
        What is read of the file, with bounds, lattices and full lists of values.
    sample, design
        Public facts about the sample and how it was drawn.
    queries
        The weighted sums that are measured, with their shares of the budget.
    imputation
        How empty cells are filled in.
    calibrations, publish
        Public totals, and the tables of estimates to write.
    allow
        Stops of a check at which a release shall not end, by their names.
    dataset, chosen_from, looked_at, format, licence, released_by
        As in every plan.

    Examples
    --------
    >>> plan = SurveyPlan(
    ...     row="person", unit="person", epsilon=1, weights={"column": "w", "lower": 1, "upper": 50},
    ...     attributes=[{"name": "sex", "values": ["f", "m"]}], queries=[{"by": "sex"}],
    ... )
    >>> plan.pipeline.starts, plan.share(plan.queries[0])
    ('target sample', Fraction(1, 1))
    """

    mechanism: ClassVar[str] = "survey"
    page: ClassVar[str] = "surveys"
    decided: ClassVar[Mapping[str, str]] = {
        "row": "what one row of the file is; the guarantee holds if each row is one whole unit",
        **Plan.decided,
        "unit": "what is protected; it must be what a row is",
    }

    row: str | None = None
    """What one row of the file is."""
    unit: Unit = "person"
    starts: Start = "target sample"
    holds_fixed: Fixed = "frame"
    change: Change = "unit"
    epsilon: Number | None = None
    rho: Number | None = None
    input: InputSection = Field(default_factory=InputSection)
    weights: WeightsSection | None = None
    """Without weights every record counts once."""
    sample: SampleSection = Field(default_factory=SampleSection)
    design: DesignSection = Field(default_factory=DesignSection)
    variables: tuple[VariableSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    attributes: tuple[AttributeSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    recodes: tuple[RecodeSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    imputation: tuple[ImputationSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    queries: tuple[QuerySection, ...] = Field(max_length=MOST_SECTIONS)
    calibrations: tuple[CalibrationSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    publish: tuple[PublishSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    allow: Names = ()
    """Stops that do not end a release."""
    format: Literal["csv", "parquet", "arrow"] = "csv"

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, fields: Any) -> Any:
        if blanks := to_fill_in(fields):
            raise errors.PlanError(
                "survey-plan",
                f"The plan is a draft: still to be filled in are {errors.listed(blanks)}.",
                "State each from public knowledge (the design, the questionnaire, published totals), never from the "
                "cells of the file. stirred docs surveys explains the fields.",
            )
        return fields

    @model_validator(mode="after")
    def _sound(self) -> Self:
        require_sound(self)
        return self

    # -- the guarantee ---------------------------------------------------------------------------------------

    @cached_property
    def pipeline(self) -> Pipeline:
        """The survey with this start and these stages held fixed."""
        return Pipeline(self.starts, self.holds_fixed)

    @property
    def noise(self) -> Literal["laplace", "gaussian"]:
        """The law of the noise, which follows from the kind of budget."""
        return "gaussian" if self.epsilon is None else "laplace"

    @property
    def budget(self) -> Fraction:
        """Epsilon or rho."""
        found = self.rho if self.epsilon is None else self.epsilon
        assert found is not None
        return found

    @cached_property
    def weight_rule(self) -> WeightRule | None:
        """The published rule that every weight goes through; None where every record counts once."""
        if self.weights is None:
            return None
        return WeightRule(**{one.name: getattr(self.weights, one.name) for one in fields(WeightRule)})

    def stratum_weights(self, stratum: str | None = None) -> tuple[Fraction, Fraction]:
        """Bounds of the weights after the rule, in one stratum or in all."""
        low, high = self._all_weights
        section = self.design.sizes.get(stratum) if stratum is not None and self.weights is not None else None
        return (low, high) if section is None else (section.lower or low, section.upper or high)

    @cached_property
    def _all_weights(self) -> tuple[Fraction, Fraction]:
        rule = self.weight_rule
        return (Fraction(1), Fraction(1)) if rule is None else (rule.after.low, rule.after.high)

    @property
    def weight_step(self) -> Fraction:
        """Every weight is a whole multiple of this."""
        return Fraction(1) if self.weights is None else self.weights.step

    @cached_property
    def selected_units(self) -> tuple[tuple[int, int | None], ...] | None:
        """By stratum how many primary units are selected, and of how many; None where the plan does not say."""
        design = self.design
        if design.strata is not None:
            sizes = [design.sizes[value] for value in self.attribute(design.strata).values]
            return tuple((one.selected, one.population) for one in sizes)
        return None if design.selected is None else ((design.selected, design.population),)

    def share(self, of: QuerySection | PublishSection | ImputationSection) -> Fraction:
        """The share of the budget that a part of the plan has; queries without a stated one share the rest alike."""
        if isinstance(of, PublishSection):
            return of.errors
        if of.share is not None:
            return of.share
        stated = [query.share for query in self.queries]
        others = sum((one.errors for one in self.publish), Fraction(0))
        others += sum((one.share for one in self.imputation), Fraction(0))
        return (1 - others - sum((one for one in stated if one is not None), Fraction(0))) / stated.count(None)

    # -- names -----------------------------------------------------------------------------------------------

    def variable(self, name: str) -> VariableSection:
        """The section of a variable; raises if there is no such variable."""
        return _named("variable", name, self.variables)

    def attribute(self, name: str) -> AttributeSection:
        """The section of an attribute, or of the one that a recode is made from."""
        name = next((one.of for one in self.recodes if one.name == name), name)
        return _named("attribute or recode", name, self.attributes, [one.name for one in self.recodes])

    def calibration(self, name: str) -> CalibrationSection:
        """The section of a calibration; raises if there is no such calibration."""
        return _named("calibration", name, self.calibrations)

    def table_of(self, name: str) -> PublishSection:
        """The section of a table of estimates; raises if there is no such table."""
        return _named("table of estimates", name, self.publish)

    def schema_of(self, names: Sequence[str]) -> Schema:
        """The attributes behind some names, with all their recodes, in the order of the plan."""
        used = {self.attribute(name).name for name in names}
        return Schema(
            tuple(Attribute(one.name, one.labels) for one in self.attributes if one.name in used),
            tuple(Recode(one.name, one.of, tuple(one.groups.items())) for one in self.recodes if one.of in used),
        )

    def number_of_cells(self, names: Sequence[str]) -> int:
        """How many cells there are by some names."""
        return self.schema_of(names).number_of_groups(names)

    def labels_of(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """The values of all cells by some names, the last one fastest."""
        return self.schema_of(names).labels(names)

    def family(self, of: str | None) -> tuple[QuerySection, ...]:
        """The queries that add up the same variable (or counts), which are combined into estimates."""
        return tuple(query for query in self.queries if query.of == of)

    def names_of(self, of: str | None) -> tuple[str, ...]:
        """All attributes and recodes that the queries of a family are by."""
        return tuple(dict.fromkeys(name for query in self.family(of) for name in query.by))

    def reading(self, path: Any) -> SurveyPlan:
        """The same plan, with its file at another path."""
        return self.model_copy(update={"input": self.input.model_copy(update={"path": str(path)})})


def _named(what: str, name: str, sections: Sequence[_Section], others: Sequence[str] = ()) -> _Section:
    """The section with a name; ``others`` are names that may be meant as well."""
    for one in sections:
        if one.name == name:
            return one
    raise errors.unknown_choice(what, name, [*(one.name for one in sections), *others])
