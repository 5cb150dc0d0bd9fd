"""Releases of simulated surveys: one frame, many samples of it, and for each the real measurements and answers.

A :class:`Study` is a frame, a design and a plan. Each of its surveys is drawn from the frame, turned into records
without a file, measured with exact noise and asked for tables, by the package's own functions; what a release would
read from the disk is kept in memory. Only what follows from the plan (the noise of queries, the least squares of a
family) is worked out once for all surveys. Truths are those of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from simulated_surveys import (
    Draws,
    Population,
    poisson,
    simple_random,
    stratified,
    systematic_by_size,
    two_stage,
)

from stirred.estimates.answers import Answers
from stirred.noise import SeededSource
from stirred.survey.data import Records, with_intervals
from stirred.survey.estimating.intervals import cumulated_shares, grid_quantiles
from stirred.survey.estimating.measured import Family, MeasuredSurvey
from stirred.survey.estimating.questions import answer
from stirred.survey.measuring import error_noise, measure_errors, query_noise, true_sums
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection

Floats = npt.NDArray[np.float64]

STEP = 1000
"""Weights are whole multiples of 1/1000."""
REGIONS = ("north", "south", "west")
SEXES = ("f", "m")
GROUPS = ("many", "some", "few", "rare", "none")
CUTS = (0, 10, 20, 30, 40, 50, 60, 80, 100)


@dataclass(frozen=True, eq=False)
class Frame:
    """Units with a region (the strata), a cluster, a size, two attributes and two variables; both on whole numbers."""

    population: Population
    codes: Mapping[str, npt.NDArray[np.int32]]
    values: Mapping[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, seed: int = 3, clusters: int = 180) -> Frame:
        """Clusters of 10 to 30 units that are somewhat alike; income is skewed, the balance also negative."""
        generator = np.random.default_rng(seed)
        sizes = generator.integers(10, 31, clusters)
        region = np.sort(np.arange(clusters) * 3 // clusters)
        effect = generator.normal(0, 1, clusters)
        at = np.repeat(np.arange(clusters), sizes)
        number = len(at)
        sex = (generator.random(number) < 0.45 + 0.03 * effect[at]).astype(np.int32)
        group = np.searchsorted([0.62, 0.92, 0.985], generator.random(number)).astype(np.int32)
        income = np.exp(3.1 + 0.55 * generator.normal(size=number) + 0.12 * effect[at] + 0.15 * region[at])
        balance = 4 * sex - 3 + 3 * effect[at] + generator.normal(0, 12, number)
        values = {
            "income": np.clip(np.rint(income), 0, 100).astype(np.int64),
            "balance": np.clip(np.rint(balance), -50, 50).astype(np.int64),
        }
        size = 5 + values["income"] // 8 + generator.integers(0, 5, number)
        codes = {"region": region[at].astype(np.int32), "sex": sex, "group": group}
        return cls(Population.of(strata=region[at], clusters=at, sizes=size), codes, values)

    def __len__(self) -> int:
        return len(self.population)


DESIGNS: Mapping[str, Callable[[Frame, int, int], Draws]] = {
    "simple random": lambda frame, surveys, seed: simple_random(frame.population, 300, surveys, seed),
    "stratified": lambda frame, surveys, seed: stratified(frame.population, [80, 100, 140], surveys, seed),
    "Poisson": lambda frame, surveys, seed: poisson(frame.population, 300, surveys, seed),
    "two-stage": lambda frame, surveys, seed: two_stage(frame.population, [9, 10, 12], 8, surveys, seed),
    "by size": lambda frame, surveys, seed: systematic_by_size(
        frame.population, [90, 90, 120], surveys, seed, random_order=True
    ),
}


def design_section(name: str, frame: Frame, draws: Draws) -> dict[str, Any]:
    """What the plan says about a design."""
    if name == "simple random":
        return {"selected": 300, "population": len(frame)}
    if name == "Poisson":
        return {"selection": "independent"}
    upper = {one: _steps(draws.weight[draws.stratum == at].max()) for at, one in enumerate(REGIONS)}
    selected = {"stratified": [80, 100, 140], "two-stage": [9, 10, 12], "by size": [90, 90, 120]}[name]
    sizes = {
        one: {"selected": number, "upper": f"{upper[one]}/{STEP}"}
        for one, number in zip(REGIONS, selected, strict=True)
    }
    if name == "stratified":
        for one, counted in zip(REGIONS, frame.population.counts.tolist(), strict=True):
            sizes[one]["population"] = counted
    found: dict[str, Any] = {"strata": "region", "sizes": sizes}
    return {**found, "clusters": "cluster", "largest_cluster": 8} if name == "two-stage" else found


def _steps(weight: float) -> int:
    return int(np.ceil(weight * STEP))


TABLES: tuple[dict[str, Any], ...] = (
    {"kind": "count", "by": "group"},
    {"kind": "total", "of": "income", "by": "group"},
    {"kind": "total", "of": "balance", "by": "group"},
    {"kind": "mean", "of": "income", "by": "group"},
    {"kind": "proportion", "of": "sex", "by": "group"},
    {"kind": "ratio", "of": "balance", "over": "income", "by": "group"},
)
CALIBRATED: tuple[dict[str, Any], ...] = tuple(
    {**one, "calibration": name}
    for name in ("post", "raked", "linear")
    for one in ({"kind": "count", "by": "group"}, {"kind": "total", "of": "income", "by": "group"},
                {"kind": "mean", "of": "income", "by": "group"})
)  # fmt: skip
APART = ("count", "mean", "proportion")
"""Kinds of tables of which differences of two groups are asked as well."""
QUANTILES: dict[str, Any] = {"kind": "quantiles", "of": "band", "by": "sex", "probabilities": ["0.25", "0.5", "0.9"]}


@dataclass(frozen=True, eq=False)
class Known:
    """What a family says to questions asked before, as far as it follows from the plan."""

    family: Family
    answers: dict[Any, Any] = field(default_factory=dict)

    def once(self, name: str, *asked: Any) -> Any:
        key = (name, *(one.tobytes() if isinstance(one, np.ndarray) else repr(one) for one in asked))
        if key not in self.answers:
            self.answers[key] = getattr(self, name)(*asked)
        return self.answers[key]

    def weights(self, by: Any, where: Any) -> Floats:
        """The weight of every measured value (column) in the estimate of every group (row)."""
        sizes = [len(one) for one in self.family.values]
        rows = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
        return np.asarray(self.family.table.estimates(rows, by, where)).T

    def variances(self, by: Any, where: Any) -> Floats:
        return self.family.noise_variances(by, where)

    def covariances(self, by: Any, where: Any, pairs: Any, other_by: Any) -> Floats:
        return self.family.noise_covariances(by, where, pairs, other_by)


@dataclass(frozen=True, eq=False, repr=False)
class KnownFamily(Family):
    """A family whose least squares were solved before: estimates are sums of weights times measured values."""

    known: Known

    def estimates(self, by: Any, where: Any) -> Floats:
        return np.asarray(self.known.once("weights", tuple(by), dict(where)) @ np.concatenate(self.values))

    def noise_variances(self, by: Any, where: Any) -> Floats:
        return np.asarray(self.known.once("variances", tuple(by), dict(where)))

    def noise_covariances(self, by: Any, where: Any, pairs: Any, other_by: Any = None) -> Floats:
        other = None if other_by is None else tuple(other_by)
        return np.asarray(self.known.once("covariances", tuple(by), dict(where), pairs, other))

    def weights_of_form(self, by: Any, coefficients: Any) -> Floats:
        return np.asarray(coefficients @ self.known.once("weights", tuple(by), {}))

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        return self.known.family.variances


@dataclass(frozen=True, eq=False)
class Study:
    """A design and a plan for one frame, and R surveys drawn by the design."""

    frame: Frame
    design: str
    draws: Draws
    plan: SurveyPlan
    _known: dict[str | None, Known] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Frame, design: str, surveys: int, seed: int, *, errors: str = "1/20", **budget: Any) -> Study:
        """``errors`` is the share of the budget for the standard errors of each of the tables."""
        draws = DESIGNS[design](frame, surveys, seed)
        lowest, highest = int(draws.weight.min() * STEP), _steps(draws.weight.max())
        counts = {name: np.bincount(code).tolist() for name, code in frame.codes.items()}
        margins = {name: {"by": name, "totals": counts[name]} for name in ("sex", "region")}
        both = [margins["sex"], margins["region"]]
        whole = {"upper": 100, "lower": 0}
        plan = SurveyPlan(
            **budget,
            chosen_from="public",
            weights={"column": "w", "lower": f"{lowest}/{STEP}", "upper": f"{highest}/{STEP}", "step": f"1/{STEP}"},
            design=design_section(design, frame, draws),
            attributes=[
                {"name": "region", "values": REGIONS},
                {"name": "sex", "values": SEXES},
                {"name": "group", "values": GROUPS},
                {"name": "band", "variable": "income", "cuts": CUTS},
            ],
            variables=[{"name": "income", **whole}, {"name": "balance", "lower": -50, "upper": 50}],
            sample={"design_depends_on_frame": False},
            queries=[
                {"by": ["region", "sex", "group"]},
                {"of": "income", "by": ["region", "sex", "group"]},
                {"of": "balance", "by": "group"},
                {"by": ["sex", "band"]},
            ],
            calibrations=[
                {"name": "post", "method": "post-stratified", "margins": [margins["sex"]]},
                {"name": "raked", "method": "raked", "margins": both},
                {"name": "linear", "method": "linear", "margins": both},
            ],
            publish=[*({**one, "errors": errors} for one in TABLES), *CALIBRATED, QUANTILES],
        )
        return cls(frame, design, draws, plan)

    def wanted(self, fields: Mapping[str, Any]) -> PublishSection:
        """A table of the plan."""
        return PublishSection(**fields)

    # -- surveys ---------------------------------------------------------------------------------------------

    def records(self, number: int) -> Records:
        """The file of one survey, as reading it would give it."""
        first, last = np.searchsorted(self.draws.survey, [number, number + 1])
        unit = self.draws.unit[first:last]
        clusters = None
        if self.plan.design.clusters is not None:
            clusters = np.unique(self.draws.psu[first:last], return_inverse=True)[1].astype(np.int64)
        weights = np.rint(self.draws.weight[first:last] * STEP).astype(np.int64)
        values = {name: column[unit] for name, column in self.frame.values.items()}
        codes = {name: column[unit] for name, column in self.frame.codes.items()}
        return with_intervals(Records(self.plan, last - first, weights, values, codes, {}, clusters, (), {}))

    @cached_property
    def noises(self) -> dict[str, Any]:
        """The noise of every query and table, which follows from the plan."""
        found = {query.name: query_noise(self.plan, query) for query in self.plan.queries}
        return found | {one.name: error_noise(self.plan, one) for one in self.plan.publish if one.errors}

    def measured(self, number: int, source: SeededSource, *, errors: bool = True) -> MeasuredSurvey:
        """One survey, measured with exact noise."""
        records = self.records(number)
        sums = {one.name: true_sums(records, one) + self.noises[one.name].draw(source) for one in self.plan.queries}
        survey = self.opened(sums)
        wanted = [one for one in self.plan.publish if one.errors and errors]
        found = {one.name: measure_errors(records, one, answer(survey, one).values, source) for one in wanted}
        return MeasuredSurvey(self.plan, sums, found, survey._families)

    def opened(self, sums: Mapping[str, Any]) -> MeasuredSurvey:
        """Measured sums, with the least squares of earlier surveys of this plan."""
        survey = MeasuredSurvey(self.plan, sums)
        for of in (None, "income", "balance"):
            family = survey.family(of)
            known = self._known.setdefault(of, Known(family))
            survey._families[of] = KnownFamily(self.plan, of, family.queries, family.values, known)
        return survey

    def releases(self, seed: int, *, errors: bool = True) -> Iterator[MeasuredSurvey]:
        """All surveys, measured."""
        source = SeededSource(seed)
        return (self.measured(number, source, errors=errors) for number in range(self.draws.surveys))

    # -- truths ----------------------------------------------------------------------------------------------

    def truth(self, fields: Mapping[str, Any]) -> Floats:
        """What a table estimates, in the frame; NaN where nobody is in a group."""
        kind, values = fields["kind"], self.frame.values
        group = self.frame.codes["group"]
        counts = np.bincount(group, minlength=len(GROUPS)).astype(float)
        if kind == "quantiles":
            bands = np.searchsorted(CUTS[1:-1], values["income"], side="right")
            table = np.bincount(self.frame.codes["sex"] * (len(CUTS) - 1) + bands).reshape(2, -1)
            edges, asked = np.array(CUTS, dtype=float), np.array([float(p) for p in fields["probabilities"]])
            return np.concatenate([grid_quantiles(edges, row, asked) for row in cumulated_shares(table)])
        with np.errstate(invalid="ignore"):
            if kind == "proportion":
                both = np.bincount(group * 2 + self.frame.codes["sex"], minlength=2 * len(GROUPS))
                return both / np.repeat(counts, 2)
            sums = {name: np.bincount(group, column, len(GROUPS)) for name, column in values.items()}
            if kind == "count":
                return counts
            found = sums[fields["of"]]
            if kind == "mean":
                return found / counts
            return found / sums[fields["over"]] if kind == "ratio" else found


@dataclass
class Tally:
    """How often intervals of the rows of one table hold the truth, and what estimates and standard errors were."""

    truth: Floats
    levels: tuple[float, ...]
    surveys: int = 0
    inside: Any = 0
    width: Any = 0
    values: list[Floats] = field(default_factory=list)
    variances: list[Floats] = field(default_factory=list)

    def add(self, found: Answers) -> None:
        """One more survey."""
        self.surveys += 1
        ends = [found.interval(level) for level in self.levels]
        slack = 1e-9 * (1 + np.abs(self.truth))
        self.inside = self.inside + np.array(
            [(low - slack <= self.truth) & (self.truth <= high + slack) for low, high in ends]
        )
        self.width = self.width + np.array([high - low for low, high in ends])
        self.values.append(found.values)
        self.variances.append(found.variances)

    @property
    def coverage(self) -> Floats:
        """By level and row the share of surveys whose interval holds the truth."""
        return np.asarray(self.inside / self.surveys)


def tallies(
    study: Study, seed: int, levels: tuple[float, ...] = (0.9, 0.95), *, tables: Any = None, measured: bool = True
) -> dict[tuple[str, str], Tally]:
    """By table and source of standard errors what all surveys of a study gave."""
    chosen = [*TABLES, *CALIBRATED[::4], QUANTILES] if tables is None else list(tables)
    found: dict[tuple[str, str], Tally] = {}
    for release in study.releases(seed, errors=measured):
        bounded = study.opened(release.sums)
        for fields in chosen:
            wanted = study.wanted(fields)
            plain = fields in TABLES
            for source, survey in (("measured", release), ("bounded", bounded)):
                if source == "measured" and not (plain and measured):
                    continue
                key = (wanted.name, source)
                if key not in found:
                    found[key] = Tally(study.truth(fields), levels)
                found[key].add(answer(survey, wanted))
                if fields["kind"] in APART and plain and source == ("measured" if measured else "bounded"):
                    key = (f"{wanted.name} apart", source)
                    if key not in found:
                        found[key] = Tally(_apart(study.truth(fields), fields["kind"]), levels)
                    found[key].add(answer(survey, wanted, difference=("group", "many", "some")))
    return found


def _apart(truth: Floats, kind: str) -> Floats:
    return truth[:2] - truth[2:4] if kind == "proportion" else truth[:1] - truth[1:2]
