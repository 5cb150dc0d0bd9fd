"""A folder with one of everything that a command may be given: data, plans, releases, a ledger, a key, draws."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

PLAN = """\
stirred = 1
mechanism = "swap"
dataset = "census 2030"
unit = "household"
rate = 0.05
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
[input]
path = "households.csv"
"""
STUDY = """\
stirred_study = 1
draws = 2
tables = [["county", "tenure"]]
[data]
main = "households"
id = "id"
geography = ["county"]
files = { households = "homes.csv" }
[[plan]]
file = "study-plan.toml"
"""


@pytest.fixture(scope="session")
def offered(tmp_path_factory) -> Path:
    """Made once; tests copy what they change. Has folders ``swap``, ``topdown`` and ``survey``."""
    import stirred
    from stirred.lab.audit.laws import gaussian
    from stirred.noise import SeededSource
    from stirred.releases.ledger.ledger import Ledger
    from stirred.survey.plan.fields import SurveyPlan
    from stirred.swap.plan.fields import SwapPlan
    from stirred.tables.synthetic.population import DOMAINS, Population
    from stirred.topdown import TopDownPlan
    from stirred.topdown.demo import FILES
    from stirred.topdown.plan.presets import preset

    root = tmp_path_factory.mktemp("offered")
    swap, topdown, survey = (root / name for name in ("swap", "topdown", "survey"))
    swap.mkdir()
    counties = [f"{'abc'[(i * i + i // 7) % 3]}" for i in range(240)]
    homes = pl.DataFrame(
        {
            "size": [str(1 + i % 2) for i in range(240)],
            "county": counties,
            "tenure": [("owned", "rented")[i * 7 // 5 % 2] for i in range(240)],
        }
    )
    homes.write_csv(swap / "households.csv")
    homes.with_row_index("id").write_csv(swap / "homes.csv")
    (swap / "plan.toml").write_text(PLAN, encoding="utf-8")
    text = PLAN.replace("households.csv", "homes.csv").replace("[input]", 'id = "id"\n[input]')
    (swap / "study-plan.toml").write_text(text, encoding="utf-8")
    (swap / "study.toml").write_text(STUDY, encoding="utf-8")
    plan = SwapPlan.from_toml(swap / "plan.toml")
    ledger = Ledger.create(swap / "census.ledger", "census 2030", None)
    stirred.release(plan, out=swap / "earlier")
    stirred.release(plan, out=swap / "release", ledger=ledger)
    drawn = gaussian("10").draw(5_000, SeededSource(1))
    (swap / "draws.txt").write_text("\n".join(map(str, drawn)) + "\n", encoding="utf-8")
    if shutil.which("ssh-keygen") is not None:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", swap / "release-key"], check=True)
    visits = Path(__file__).parent / "spec" / "registry" / "counts-of-visits.yaml"
    shutil.copy(visits, swap / "record.yaml")

    topdown.mkdir()
    made = Population(1_000, seed=4)
    made.write(topdown)
    at = pl.int_range(pl.len())
    areas = {"places": (at // 7).cast(pl.String), "districts": (at // 30).cast(pl.String)}
    made.tables().blocks.with_columns(**areas).write_csv(topdown / "blocks.csv")
    redistricting = preset("pl94-2020", DOMAINS, dataset="a small census", chosen_from="public").reading(FILES)
    (topdown / "plan.toml").write_text(redistricting.to_toml(), encoding="utf-8")
    stirred.release(TopDownPlan.from_toml(topdown / "plan.toml"), out=topdown / "release")

    from stirred.survey.mechanism import MECHANISM

    verb = next(one for one in MECHANISM.verbs if one.name == "generate-survey")
    verb.run(out=survey, persons=4_000, seed=1, design="stratified")
    stirred.release(SurveyPlan.from_toml(survey / "survey.toml"), out=survey / "release")
    return root


@pytest.fixture
def files(offered, tmp_path, monkeypatch):
    """``files("swap")``: a copy of one of the folders, as the current folder."""

    def copied(name: str) -> Path:
        shutil.copytree(offered / name, tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        return tmp_path / name

    yield copied
    # The ledger knows the release by the place where it was made, so that this is where a withdrawal is stated too.
    (offered / "swap" / "release" / "WITHDRAWN.txt").unlink(missing_ok=True)


@pytest.fixture
def as_json(command):
    """Runs a command with ``--json`` and gives what it printed, read."""

    def run(*words: object) -> object:
        ended = command(*words, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    return run
