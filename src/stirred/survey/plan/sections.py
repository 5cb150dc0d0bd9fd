"""The parts of a survey plan: weights, variables, attributes, the design, what is measured and what is published.

Everything here is public and is stated, never read from the data: bounds that were read from the data would themselves
reveal something. Numbers are exact fractions. Values and weights lie on a lattice: each is a whole multiple of its
``step``, so that sums are whole numbers of one unit and noise can be exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.releases.plans import MOST_NAMES, MOST_SECTIONS, Names, Section, slug
from stirred.spec.exact import written
from stirred.survey.plan.sensitivity import Bounds

COUNT = "count"
"""What a query of weighted counts is called; no variable may have this name."""

TO_FILL_IN = "FILL IN"
"""What a draft has where a public fact must be stated; a plan that still has it is refused."""


def to_fill_in(fields: object, at: str = "") -> list[str]:
    """The fields of a plan that somebody still has to fill in, by their names.

    >>> to_fill_in({"epsilon": "FILL IN", "variables": [{"name": "income", "upper": "FILL IN"}]})
    ['epsilon', 'variables.income.upper']
    """
    if isinstance(fields, str):
        return [at] if fields == TO_FILL_IN else []
    if isinstance(fields, Mapping):
        inside = [(str(name), value) for name, value in fields.items()]
        if any(name == TO_FILL_IN for name, _ in inside):
            return [at]
    elif isinstance(fields, list | tuple):
        if TO_FILL_IN in fields:
            return [at]
        inside = [
            (str(one.get("name", n)) if isinstance(one, Mapping) else str(n), one) for n, one in enumerate(fields)
        ]
    else:
        return []
    return [found for name, value in inside for found in to_fill_in(value, f"{at}.{name}" if at else name)]


def _number(given: object) -> Fraction:
    try:
        return as_fraction(given)
    except NOT_A_NUMBER:
        raise errors.survey_plan(f"The number {given!r}", "must be finite, such as 12, 0.05 or '1/3'") from None


def _share(given: object) -> Fraction:
    share = _number(given)
    if share < 0:
        raise errors.survey_plan(f"The share {given!r}", "cannot be negative")
    return share


Number = Annotated[Fraction, BeforeValidator(_number), PlainSerializer(written, return_type=str)]
Share = Annotated[Fraction, BeforeValidator(_share), PlainSerializer(written, return_type=str)]
Outside = Literal["refuse", "cut"]
Rounding = Literal["refuse", "nearest"]


class WeightsSection(Section):
    """The column of weights, between which bounds they lie, and by which published rule they are brought there."""

    column: str
    kind: Literal["design", "final"] = "design"
    """``final`` weights are adjusted for nonresponse or calibrated: every record has a part in each of them."""
    lower: Number
    upper: Number
    step: Number = Fraction(1)
    """Every weight is a whole multiple of this."""
    outside: Outside = "refuse"
    """What happens to weights beyond the bounds: the release ends with an error, or they are cut at the bounds."""
    rounding: Rounding = "refuse"
    """What happens to weights between two multiples of the step: an error, or the nearest one is taken."""
    shrink: Share = Fraction(0)
    """How far each weight is drawn towards ``centre``: 0 not at all, 1 all the way (equal weights)."""
    centre: Number | None = None


class VariableSection(Section):
    """A numeric column that is added up: its bounds, its lattice, and what an empty cell counts as."""

    name: str
    column: str | None = None
    lower: Number
    upper: Number
    step: Number = Fraction(1)
    outside: Outside = "refuse"
    rounding: Rounding = "refuse"
    missing: Number | None = None
    """The number that an empty cell counts as; without it an empty cell is an error, unless it is imputed."""

    @property
    def bounds(self) -> Bounds:
        """Between which limits its values lie."""
        return Bounds(self.lower, self.upper)


class AttributeSection(Section):
    """A categorical column with all values it can have; or a variable cut into intervals, for quantiles."""

    name: str
    values: Names = ()
    column: str | None = None
    missing: str | None = None
    """The value that an empty cell counts as; without it an empty cell is an error, unless it is imputed."""
    in_frame: bool = False
    """The value stands in the frame: other answers to the survey do not change it."""
    variable: str | None = None
    cuts: tuple[Number, ...] = Field(default=(), max_length=MOST_NAMES)
    """Where the intervals of ``variable`` begin and end, ascending, from its lower to its upper bound."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All values; of a variable that is cut, its intervals in order."""
        if self.variable is None:
            return self.values
        ends = [written(cut) for cut in self.cuts]
        return tuple(f"{low} to {high}" for low, high in pairwise(ends))


class RecodeSection(Section):
    """A coarser version of an attribute: its groups by name, each with the values that belong to it."""

    name: str
    of: str
    groups: Mapping[str, Names]


class StratumSection(Section):
    """Public facts about one stratum of the design."""

    selected: int = Field(ge=1)
    """How many primary units (clusters, or records where there are none) the design selects in it."""
    population: int | None = Field(default=None, ge=1)
    """How many primary units it has, for the finite population correction; without it sampling is taken to be from
    infinitely many. State it only where all records of a selected primary unit are in the file: where a second stage
    selects among them, the correction would leave its error out."""
    lower: Number | None = None
    upper: Number | None = None
    """Bounds of the weights in this stratum, where they are closer than those of all weights."""


class ReplicatesSection(Section):
    """Columns of replicate weights, for the confidential comparison: their names and how they were made."""

    columns: Names
    method: Literal["brr", "fay", "jk1", "jkn", "bootstrap", "sdr"]
    fay: Number = Fraction(0)
    scales: tuple[Number, ...] = Field(default=(), max_length=MOST_NAMES)
    """For ``jkn`` the coefficient of each replicate."""


class DesignSection(Section):
    """How the sample was drawn, as far as standard errors need it; all of it is public."""

    strata: str | None = None
    """The attribute whose values are the strata."""
    clusters: str | None = None
    """The column that names the primary unit of each record; without it every record is one."""
    largest_cluster: int | None = Field(default=None, ge=1)
    """The most records that a primary unit can have in the file; bounds of standard errors need it."""
    selection: Literal["fixed number", "independent"] = "fixed number"
    """How primary units are selected: a fixed number of them (in each stratum), or each by a chance of its own (Poisson
    or Bernoulli sampling). Then their number is random, adds to the error of totals, and is not stated."""
    selected: int | None = Field(default=None, ge=2)
    population: int | None = Field(default=None, ge=1)
    sizes: Mapping[str, StratumSection] = Field(default_factory=dict, max_length=MOST_NAMES)
    """For each stratum how many primary units are selected, and how many there are."""
    single: Literal["refuse", "certain"] = "refuse"
    """What strata with one selected primary unit are: an error, or units taken with certainty, which add nothing."""
    replicates: ReplicatesSection | None = None


class SampleSection(Section):
    """What is publicly known about the sample, beside its weights. What is not stated is taken the careful way."""

    fewest: int = Field(default=1, ge=1)
    most: int | None = Field(default=None, ge=1)
    """The fewest and the most records that the file could have."""
    population: Number | None = None
    """The public number of units in the population."""
    everybody_responds: bool = False
    design_depends_on_frame: bool = True
    """Changing a record of the frame may change other units' chances of selection."""
    stratum_sizes_fixed: bool = False
    """The design fixes the number of sampled units in each stratum."""


class QuerySection(Section):
    """Weighted sums to measure: of a variable (or counts), in every cell by some attributes or recodes."""

    of: str | None = None
    by: Names = ()
    share: Share | None = None
    """The share of the budget."""

    @property
    def name(self) -> str:
        """The name of the query, of its table and of its file."""
        return "-".join(slug(part) for part in (self.of or COUNT, *self.by))


class MarginSection(Section):
    """Public totals that estimates are adjusted to: of all units by some attributes or recodes."""

    by: Names
    totals: tuple[Number, ...] = Field(max_length=MOST_NAMES)
    """In the order of the values, the last attribute fastest."""


class CalibrationSection(Section):
    """An adjustment of estimates to public totals, made after the noise and therefore free."""

    name: str
    method: Literal["post-stratified", "raked", "linear"]
    margins: tuple[MarginSection, ...] = Field(max_length=MOST_SECTIONS)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes and recodes of all margins."""
        return tuple(dict.fromkeys(name for margin in self.margins for name in margin.by))


class PublishSection(Section):
    """A table of estimates to publish: made from the measured sums, with standard errors and intervals."""

    kind: Literal["count", "total", "mean", "proportion", "ratio", "quantiles"]
    of: str | None = None
    """The variable; of proportions and quantiles the attribute."""
    over: str | None = None
    """The variable in the denominator of a ratio."""
    by: Names = ()
    calibration: str | None = None
    probabilities: tuple[Number, ...] = Field(default=(), max_length=MOST_NAMES)
    confidence: Number = Fraction(19, 20)
    """Of the intervals that are written."""
    errors: Share = Fraction(0)
    """The share of the budget with which the standard errors of the design are measured; without it they are bounded
    from public facts, where that is possible."""

    @property
    def name(self) -> str:
        """The name of its file, without the extension."""
        parts = (self.kind, self.of, *(["over", self.over] if self.over else []), *self.by, self.calibration)
        return "-".join(slug(part) for part in parts if part)

    @property
    def summed(self) -> str | None:
        """The variable whose sums are divided, or told; None for weighted counts."""
        return self.of if self.kind in ("total", "mean", "ratio") else None

    @property
    def cells(self) -> tuple[str, ...]:
        """The attributes and recodes whose cells it needs; of shares and quantiles the attribute is one of them."""
        return (*self.by, str(self.of)) if self.kind in ("proportion", "quantiles") else self.by


class ImputationSection(Section):
    """How empty cells of one attribute or variable are filled in: row by row, from a model estimated with noise."""

    of: str
    kind: Literal["frequencies", "linear", "hot deck", "mean", "conditional frequencies", "linear regression"]
    """The first two estimate their parameters with noise; the others are known and refused, each with its reason."""
    given: Names = ()
    """The attributes (``frequencies``) or the one variable (``linear``) that the model predicts from."""
    share: Share = Fraction(0)
