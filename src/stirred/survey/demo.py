"""The survey demonstration: a generated survey is released, verified, and compared with the true population.

The truth can be printed because everybody in the survey is invented.
"""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from stirred.estimates import Answers
from stirred.releases.folder.release_folder import ReleaseFolder, verify_with
from stirred.releases.progress import OnTerminal
from stirred.releases.steps import DocumentWriter, release
from stirred.releases.verdicts import State
from stirred.spec.exact import display
from stirred.survey.estimating import estimate
from stirred.survey.generating import HIGHEST_INCOME, PLAN, write_lines
from stirred.survey.mechanism import MECHANISM
from stirred.survey.plan import SurveyPlan
from stirred.survey.verifying import recount

PERSONS = 400_000
SEED = 1
_HOLDS = "Verified: tables, budget and guarantee were recomputed from the folder, and hold."


def run(folder: Path, documents: DocumentWriter | None = None) -> None:
    """Generate the survey, release it, verify the release, and print estimates beside the truth."""
    began = time.monotonic()
    write_lines(folder, PERSONS, SEED, "two-stage")
    plan = SurveyPlan.from_toml(folder / PLAN)
    truth = pl.read_csv(folder / "truth.csv", schema_overrides={"value": pl.String})
    print(
        f"A generated survey of {PERSONS:,} adults: strata, blocks of persons within them, and a third that did not\n"
        "answer. Protected is one sampled person, with the list that the sample was drawn from taken as known (the\n"
        "authors' recommendation). The design weights are used; public totals are adjusted to after the noise.\n"
    )
    with OnTerminal() as progress:
        made = release(MECHANISM, plan, out=folder / "release", documents=documents, progress=progress)
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
