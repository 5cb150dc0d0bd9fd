"""Writes a generated survey with a complete plan (``stirred generate-survey``), and demonstrates its release.

The plan shows every part that a real one has, with comments: where the guarantee starts, weights and their bounds, the
design, imputation, what is measured, public totals to adjust to, and tables to publish. The invariant a reader must
know: every number in it comes from ``strata.csv``, ``totals.csv`` or the options of the generator, which are public,
and none from the records.

The demonstration releases and verifies such a survey and prints its estimates beside the truth: it may, because
everybody in the survey is invented.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from stirred.estimates import Answers
from stirred.releases.folder.atomic import appearing
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.folder.verifying import verify_with
from stirred.releases.mechanism import Release
from stirred.releases.verdicts import State
from stirred.spec.exact import display
from stirred.survey.estimating.questions import estimate
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.verifying import recount
from stirred.tables.reading.first_look import toml
from stirred.tables.synthetic.survey_frame import AGE_GROUP, BOUNDS, EMPLOYMENT, SEX, DesignName, make_frame
from stirred.tables.synthetic.surveys import Survey, draw_survey

PLAN = "survey.toml"
TAKE = 15
"""Persons taken from each selected block."""
HIGHEST_INCOME = 150_000
"""Incomes above this count as this: noise grows with the largest income that there can be."""


def write_lines(out: str | Path, persons: int = 100_000, seed: int = 1, design: DesignName = "two-stage") -> list[str]:
    """Write the survey, its public tables and ``survey.toml`` into a new folder; returns the lines to print."""
    target = Path(out)
    survey = draw_survey(make_frame(persons, seed=seed), seed=seed, design=design, take=TAKE)
    with appearing(target) as folder:
        survey.write(folder)
        (folder / PLAN).write_text(plan_text(survey), encoding="utf-8")
    return [
        f"{target} holds a generated survey: {survey.records.height:,} answers from {survey.target.height:,} sampled "
        f"adults of {persons:,} ({design} design). Nobody in it is real.",
        "  survey.csv    the answers, with weights and replicate weights: what would be confidential",
        "  strata.csv    the design, public: sizes of strata, how many are selected, bounds of weights",
        "  totals.csv    public numbers of persons, to adjust estimates to",
        "  truth.csv     the true values of the whole population, which a real survey never knows",
        f"  {PLAN}   a plan that releases it; its comments say what each part is for",
        f"Next: stirred advise {target / PLAN}",
        f"      stirred check {target / PLAN}",
        f"      stirred release {target / PLAN} --out RELEASE",
    ]


def plan_text(survey: Survey) -> str:
    """The plan as TOML with comments: ``demo_plan.toml``, filled in.

    Income gets more of the budget than counts: noise is a larger part of the width of its intervals.
    """
    strata, known = survey.strata, survey.totals
    stratified = strata.height > 1
    fixed = strata["selected_psus"].null_count() == 0
    filled = {
        "design": survey.design,
        "lower": _decimal(strata["smallest_weight"].min()),
        "upper": _decimal(strata["largest_weight"].max()),
        "most": _most(survey),
        "population": survey.frame.height,
        "sizes_fixed": "true" if stratified and fixed else "false",
        "selection": "\n".join(_selection(survey, stratified, fixed)),
        "regions": "\n".join(_regions(survey, stratified)),
        "age_groups": toml(AGE_GROUP),
        "sexes": toml(SEX),
        "employments": toml(EMPLOYMENT),
        "highest": HIGHEST_INCOME,
        "least_hours": BOUNDS["hours"][0],
        "most_hours": BOUNDS["hours"][1],
        "by_age": toml(_totals(known, {"age_group": AGE_GROUP, "sex": SEX})),
        "by_region": toml(_totals(known, {"region": survey.values["region"]})),
    }
    return Template((files("stirred.survey") / "demo_plan.toml").read_text(encoding="utf-8")).substitute(filled)


# -- parts of the plan -----------------------------------------------------------------------------------------------


def _most(survey: Survey) -> str:
    sampled = survey.strata["sampled_units"]
    if sampled.null_count():
        return "# most = ...               # chance decides how many are sampled, so there is no limit"
    return f"most = {sampled.sum()}                # sampled persons; how many answer is not public"


def _selection(survey: Survey, stratified: bool, fixed: bool) -> list[str]:
    if not fixed:
        return ['selection = "independent"  # each person by a chance of her own (Poisson sampling)']
    lines = []
    clusters = survey.design == "two-stage"
    if clusters:
        lines += [
            'clusters = "psu"           # blocks are selected first, then persons in them',
            f"largest_cluster = {TAKE}       # at most so many persons are taken from a block",
        ]
    if not stratified:
        row = survey.strata.row(0, named=True)
        return [*lines, f"selected = {row['selected_psus']}", f"population = {row['population_psus']}"]
    what = "blocks" if clusters else "persons"
    lines += ['strata = "stratum"', f"[design.sizes]             # {what}: selected, in the population; weights"]
    for row in survey.strata.rows(named=True):
        low, high = _decimal(row["smallest_weight"]), _decimal(row["largest_weight"])
        lines.append(
            f"{toml(row['stratum'])} = {{ selected = {row['selected_psus']}, population = {row['population_psus']}, "
            f"lower = {low}, upper = {high} }}"
        )
    return lines


def _regions(survey: Survey, stratified: bool) -> list[str]:
    known = "stratum" if stratified else "region"
    lines = ["[[attributes]]", f"name = {toml(known)}", f"values = {toml(survey.values[known])}"]
    lines.append("in_frame = true            # known from the frame")
    if stratified:
        lines += [
            "[[recodes]]                # regions are made of strata, so no person can change them",
            'name = "region"',
            'of = "stratum"',
            "[recodes.groups]",
        ]
        regions: dict[str, list[str]] = {}
        for row in survey.strata.rows(named=True):
            regions.setdefault(row["region"], []).append(row["stratum"])
        lines += [f"{toml(name)} = {toml(members)}" for name, members in regions.items()]
    return lines


def _totals(known: pl.DataFrame, of: Mapping[str, Iterable[str]]) -> list[int]:
    """The public totals of one margin, in the order of the values; the last attribute fastest."""
    here = known.filter(pl.col("margin") == "*".join(of))
    found = {tuple(row[name] for name in of): row["persons"] for row in here.rows(named=True)}
    return [found[key] for key in itertools.product(*of.values())]


def _decimal(value: Any) -> str:
    """A weight with two decimals, as it stands in the file."""
    return f"{value:.2f}"


PERSONS = 400_000
SEED = 1
_HOLDS = "Verified: tables, budget and guarantee were recomputed from the folder, and hold."


def prepare(folder: Path) -> SurveyPlan:
    """Generate the survey, and write it with its plan into a new folder."""
    write_lines(folder, PERSONS, SEED, "two-stage")
    print(
        f"A generated survey of {PERSONS:,} adults: strata, blocks of persons within them, and a third that did not\n"
        "answer. Protected is one sampled person, with the list that the sample was drawn from taken as known (the\n"
        "authors' recommendation). The design weights are used; public totals are adjusted to after the noise.\n"
    )
    return SurveyPlan.from_toml(folder / PLAN)


def show(folder: Path, made: Release, began: float) -> None:
    """Verify the release, and print its estimates beside the truth."""
    truth = pl.read_csv(folder / "truth.csv", schema_overrides={"value": pl.String})
    print(_table(folder / "release", truth))
    print()
    verdicts = verify_with(ReleaseFolder.open(folder / "release"), recount)
    print("\n".join(str(one) for one in verdicts if one.state is State.CONTRADICTED) or _HOLDS)
    print(
        f"rho = {display(made.specification.budget.number)} per person of the target sample: noise hides which of two "
        "persons was sampled in a stratum,\nand what they answered. It says nothing about who is in the frame.\n"
    )
    print(f"{time.monotonic() - began:.1f} s in all. {folder} holds the survey, {PLAN} and release/. Next, try:")
    for command, said in (
        (f"advise {folder}/{PLAN}", "ten settings, for a committee"),
        (f"check {folder}/{PLAN}", "expected errors; confidential"),
        (f"estimate {folder}/release --by sex --share employment", "any other estimate"),
        ("init --mechanism survey YOUR_FILE.csv", "draft a plan for your own file"),
    ):
        print(f"  stirred {command:72}{said}")


def _table(released: Path, truth: pl.DataFrame) -> str:
    """Estimates with intervals, the truth, and how much of the width is sampling and how much noise."""
    known = {(row["by"], row["value"]): row for row in truth.rows(named=True)}
    lines = [
        f"{'':34}{'estimate':>12}{'95% interval':>24}{'truth':>12}{'sampling':>10}{'noise':>8}",
    ]
    counted = [0, 0]

    def shown(name: str, found: Answers, true: dict[str, float], form: str = ",.0f") -> None:
        lines.append(name)
        for row in found.to_frame().rows(named=True):
            label = str(row[found.by[-1]]) if found.by else "all"
            if label not in true:
                continue
            if row["estimate"] is None:
                lines.append(f"  {label:32}{row['interval']}")
                continue
            inside = row["lower"] <= true[label] <= row["upper"]
            counted[0] += inside
            counted[1] += 1
            sampling, noise = row["sampling_error"] ** 2, row["noise_error"] ** 2
            part = noise / (sampling + noise)
            interval = f"{row['lower']:{form}} to {row['upper']:{form}}"
            lines.append(
                f"  {label:32}{row['estimate']:>12{form}}{interval:>24}{true[label]:>12{form}}"
                f"{1 - part:>10.0%}{part:>8.0%}" + ("" if inside else "  missed")
            )

    def per_person(by: str, of: str) -> dict[str, float]:
        return {value: row[of] / row["persons"] for (name, value), row in known.items() if name == by}

    shown("mean income by region", estimate(released, ["region"], of="income"), per_person("region", "income"))
    shown("mean income by sex", estimate(released, ["sex"], of="income"), per_person("sex", "income"))
    everybody = known["all", "all"]
    kinds = {name: float(everybody[name]) for name in ("employed", "unemployed", "inactive")}
    shown("persons, adjusted to public totals", estimate(released, ["employment"], calibration="persons"), kinds)
    lines.append(
        f"\n{counted[0]} of {counted[1]} intervals contain the truth. Sampling and noise are shares of the squared "
        "standard error. Standard\nerrors of means were measured with noise; those of adjusted counts are upper bounds "
        "from public facts, and\nso are wide. Intervals cover sampling and noise, nothing else: not that who answers "
        f"differs from who does not,\nand not that incomes above {HIGHEST_INCOME:,} count as {HIGHEST_INCOME:,}."
    )
    return "\n".join(lines)
