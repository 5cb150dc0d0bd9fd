"""What 0.1 to 0.7 made is read, verified and gone on with: releases, work folders, ledgers, plans."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import stirred
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.ledger.ledger import Ledger
from stirred.topdown import TopDownPlan, reopen

FIXTURES = Path(__file__).parent / "fixtures"
MADE = FIXTURES / "v0_1"
V0_6 = FIXTURES / "v0_6"
LABELLED = {"stata": "dta", "spss": "sav", "sas": "xpt"}
V0_7 = FIXTURES / "v0_7"
PLANS = [(path.parent.name, path.stem) for made in (V0_6, V0_7) for path in sorted(made.glob("*.toml"))]
RELEASES = [*PLANS, ("v0_6", "adopted")]
SIGNED = ("swap", "topdown", "survey")
FAST = {("v0_6", "survey"), ("v0_6", "topdown"), ("v0_7", "swap")}
"""Witnesses outside the slow suite: together, the last two versions and every mechanism."""


def fast_or_slow(cases: list[tuple[str, str]]):
    """The cases, those that are no witness marked as slow."""
    return [pytest.param(*one, marks=[] if one in FAST else pytest.mark.slow) for one in cases]


@pytest.fixture
def made(tmp_path) -> Path:
    """A copy to work in."""
    return Path(shutil.copytree(MADE, tmp_path / "made"))


@pytest.fixture
def made_by_0_2(made) -> Path:
    """The same plans and data, with what 0.2 made of them."""
    shutil.copytree(FIXTURES / "v0_2", made, dirs_exist_ok=True)
    return made


@pytest.fixture
def made_by_0_3(made) -> Path:
    """The same plans and data, with what 0.3 made of them."""
    shutil.copytree(FIXTURES / "v0_3", made, dirs_exist_ok=True)
    return made


@pytest.fixture
def made_by_0_4(made) -> Path:
    """The same plans and data, with what 0.4 made of them, and plans of its own."""
    shutil.copytree(FIXTURES / "v0_4", made, dirs_exist_ok=True)
    return made


@pytest.fixture
def made_by_0_5(made) -> Path:
    """The same plans and data, with what 0.5 made of them, and a swap in rounds of its own."""
    shutil.copytree(FIXTURES / "v0_5", made, dirs_exist_ok=True)
    return made


@pytest.fixture
def made_by_0_6(made) -> Path:
    """What 0.6 made, its plans, and the files that earlier versions read, some of which these plans read too."""
    for version in ("v0_4", "v0_5", "surveys"):
        for path in (FIXTURES / version).glob("*.csv"):
            shutil.copy(path, made)
    shutil.copytree(V0_6, made, dirs_exist_ok=True)
    return made


@pytest.fixture
def made_by_0_7(tmp_path) -> Path:
    """What 0.7 made, its plans, and the files that these read."""
    made = Path(shutil.copytree(V0_7, tmp_path / "made"))
    for path in (*MADE.glob("*.csv"), FIXTURES / "v0_4" / "people-of-households.csv", V0_6 / "answers.csv"):
        shutil.copy(path, made)
    return made


@pytest.fixture
def made_by(request):
    """What a version made, by the name of its folder."""
    return lambda version: request.getfixturevalue(version.replace("v", "made_by_"))


@pytest.mark.parametrize(
    ("version", "name"),
    fast_or_slow(
        [(version, name) for version in ("v0_1", "v0_2", "v0_3", "v0_4", "v0_5") for name in ("swap", "topdown")]
        + [("v0_4", name) for name in ("rates", "coarsen", "flat")]
        + [("v0_5", "rounds")]
        + RELEASES
    ),
)
def test_a_release_of_an_earlier_version_verifies(version, name, command):
    ended = command("verify", FIXTURES / version / name)
    assert ended.code == 4, ended.out
    assert ended.out.startswith("Nothing contradicts, but not everything was compared. Not compared: ")
    assert "README.txt" in ended.out.splitlines()[0] and "FAILS" not in ended.out


@pytest.mark.slow
def test_tables_and_estimates_of_0_1s_releases_can_be_made():
    found = stirred.tabulate(MADE / "swap", ["county"]).to_pydict()
    assert sum(found["count"]) == 120
    assert sum(stirred.tabulate(MADE / "swap", ["tenure", "age"], "persons").to_pydict()["count"]) == 240
    assert stirred.estimate(MADE / "topdown", level="county").values.sum() == 300
    assert "person" in stirred.explain(MADE / "topdown").text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swap", "topdown"])
def test_a_plan_of_0_1_is_read_and_publishes_the_same_tables(name, made, command):
    ended = command("check", made / f"{name}.toml", "--json")
    assert ended.code == 0, ended.err
    before, after = json.loads((MADE / f"{name}-check.json").read_text()), json.loads(ended.out)
    stated = [Fraction(one["specification"]["budget"].pop("value")) for one in (before, after)]
    assert 0 <= stated[1] - stated[0] < Fraction(1, 10**14)  # epsilon was rounded to the nearest, and now up
    # Forecasts depend on the machine, and the form of stops and infinities has changed.
    if name == "swap":  # the specification states more: movement since 0.4, counts of one since 0.7
        _without_movement(after)
    for one in (before, after):  # the words of findings may be made plainer
        one["specification"]["findings"] = [finding["id"] for finding in one["specification"]["findings"]]
    for key in ("specification", "records", "strata", "invariants", "movement", "geounits", "measurements"):
        assert before.get(key) == after.get(key), key
    assert command("release", made / f"{name}.toml", "--out", made / "new").code == 0
    published = sorted(path.name for path in (made / "new" / "tables").iterdir())
    assert published == sorted(path.name for path in (MADE / name / "tables").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swap", "rates", "coarsen", "flat"])
def test_a_plan_of_0_4_has_the_same_guarantee_today(name, made_by_0_4, command):
    """Rates by rule, a coarser match, persons in the rows of the main file: the five blocks follow from the plan."""
    ended = command("release", made_by_0_4 / f"{name}.toml", "--out", made_by_0_4 / "new")
    assert ended.code == 0, ended.err
    assert stirred.read(made_by_0_4 / "new") == stirred.read(made_by_0_4 / name)


@pytest.mark.slow
def test_a_plan_of_0_5_in_rounds_has_the_same_guarantee_today(made_by_0_5, command):
    ended = command("release", made_by_0_5 / "rounds.toml", "--out", made_by_0_5 / "new")
    assert ended.code == 0, ended.err
    assert stirred.read(made_by_0_5 / "new") == stirred.read(made_by_0_5 / "rounds")
    found = stirred.estimate(made_by_0_5 / "rounds", ["county", "tenure"], share="tenure")
    assert len(found) == 6


@pytest.mark.parametrize(("version", "name"), fast_or_slow(PLANS))
def test_a_plan_has_the_same_guarantee_today(version, name, made_by, command):
    """Guarantees are equal, and tables, dictionaries and labelled files have the same names."""
    made = made_by(version)
    if name in LABELLED:  # 0.6 did not look for records that can be put back, of which these small files have many
        plan = made / f"{name}.toml"
        plan.write_text(f"most_recovered = 1\n{plan.read_text(encoding='utf-8')}", encoding="utf-8")
    ended = command("release", made / f"{name}.toml", "--out", made / "new", "--no-report")
    assert ended.code == 0, ended.err
    assert stirred.read(made / "new") == stirred.read(made / name)
    written = {path.relative_to(made / "new") for path in (made / "new").rglob("*")}
    kept = {path.relative_to(made / name) for path in (made / name).rglob("*")}
    assert kept - written <= {Path("report.html"), Path("manifest.json.sig")} and not written - kept
    if name in LABELLED:
        assert Path(f"microdata.{LABELLED[name]}") in written


@pytest.mark.parametrize(("version", "name"), fast_or_slow(RELEASES))
def test_a_release_can_be_explained(version, name, command):
    ended = command("explain", FIXTURES / version / name)
    assert ended.code == 0, ended.err
    assert len(ended.out.splitlines()) > 20


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize(
    ("version", "name"), fast_or_slow([(version, name) for version in ("v0_6", "v0_7") for name in SIGNED])
)
def test_a_signature_names_its_signer_and_is_of_these_files_alone(version, name, made_by, command):
    made = made_by(version)
    said = ("--signers", made / "publishers.txt")
    ended = command("verify", made / name, *said)
    assert ended.code == 4, ended.out
    assert "signed by publisher@your.office" in ended.out
    with (made / name / "README.txt").open("a") as readme:
        readme.write("One more line.\n")
    (made / name / "manifest.json").unlink()
    write_manifest(made / name)
    ended = command("verify", made / name, *said)
    assert ended.code == 1
    assert any(line.startswith("FAILS") and "signature" in line for line in ended.out.splitlines()), ended.out


def test_tables_and_estimates_of_0_6s_releases_can_be_made():
    for name, level in (("topdown", "county"), ("after", "tract"), ("relations", "town"), ("adopted", "county")):
        assert stirred.estimate(V0_6 / name, level=level).values.size
    assert len(stirred.estimate(V0_6 / "options", ["county", "tenure"], share="tenure")) == 6
    assert len(stirred.estimate(V0_6 / "survey", ["region"], of="income")) == 8
    assert len(stirred.estimate(V0_6 / "survey", ["employment"], calibration="persons")) == 3
    assert len(stirred.estimate(V0_6 / "plain", ["domain"])) == 4
    assert len(stirred.estimate(V0_6 / "final", ["category"], calibration="persons")) == 3
    for kind in LABELLED:
        assert sum(stirred.tabulate(V0_6 / kind, ["county"]).to_pydict()["count"]) == 120


def test_noisy_measurement_files_of_0_6_are_read_written_and_adopted_alike(made_by_0_6, command):
    files = V0_6 / "noisy-files"
    assert command("noisy-measurements", V0_6 / "noisy", made_by_0_6 / "files").code == 0
    for path in (path for path in files.rglob("*") if path.is_file()):
        again = made_by_0_6 / "files" / path.relative_to(files)
        if path.suffix == ".parquet":
            assert pq.read_table(again).equals(pq.read_table(path))
        else:
            assert again.read_bytes() == path.read_bytes()
    ended = command(
        "release", "--measurements", files, "--totals", files / "totals.csv", "--out", made_by_0_6 / "new",
        "--no-report",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert stirred.read(made_by_0_6 / "new") == stirred.read(V0_6 / "adopted")


@pytest.mark.parametrize(
    ("version", "ledger", "names", "more"),
    [
        pytest.param("v0_6", "swap", ("swap", "rates", "rounds", "coarsen"), "flat", marks=pytest.mark.slow),
        pytest.param("v0_6", "topdown", ("topdown", "after"), "topdown", marks=pytest.mark.slow),
        pytest.param("v0_6", "towns", ("constraints",), "constraints", marks=pytest.mark.slow),
        ("v0_6", "survey", ("survey",), "survey"),
        ("v0_7", "swap", ("swap", "flat"), "flat"),
    ],
)
def test_a_ledger_has_its_releases_and_counts_on(version, ledger, names, more, made_by, command):
    made = made_by(version)
    path = made / f"{ledger}.ledger"
    opened = Ledger.open(path)
    assert [entry.specification for entry in opened.entries()] == [stirred.read(made / name) for name in names]
    ended = command("release", made / f"{more}.toml", "--out", made / "new", "--ledger", path, "--no-report")
    assert ended.code == 0, ended.err
    assert len(opened.entries()) == len(names) + 1


@pytest.mark.slow
def test_a_limit_of_0_6_still_ends_a_release(made_by_0_6, command):
    """The limit is rho 10, and each release spends 2.5."""
    words = ("--ledger", made_by_0_6 / "towns.ledger", "--no-report")
    ended = [
        command("release", made_by_0_6 / "constraints.toml", "--out", made_by_0_6 / f"new-{number}", *words)
        for number in range(4)
    ]
    assert [one.code for one in ended[:3]] == [0, 0, 0]
    assert ended[3].code != 0 and "limit" in ended[3].err
    assert not (made_by_0_6 / "new-3").exists()


@pytest.mark.slow
def test_a_ledger_of_0_4_has_its_two_releases_and_counts_on(made_by_0_4, command):
    ledger = Ledger.open(made_by_0_4 / "swap.ledger")
    assert [entry.specification for entry in ledger.entries()] == [
        stirred.read(made_by_0_4 / name) for name in ("swap", "rates")
    ]
    ended = command(
        "release", made_by_0_4 / "coarsen.toml", "--out", made_by_0_4 / "new", "--ledger", made_by_0_4 / "swap.ledger"
    )
    assert ended.code == 0, ended.err
    assert len(ledger.entries()) == 3


def _without_movement(check: dict[str, Any]) -> None:
    """Take away what a check did not say before."""
    for one in check["strata"]["sizes"]:
        assert 0 <= one.pop("changed_share") <= one.pop("moved_share") <= 1
    assert 0 <= check["movement"].pop("unchangeable_share") < 1
    later = ("changed_share", "unchangeable_share", "alone_by_match_and_swap")
    new = [fact for fact in check["specification"]["facts"] if fact[0] in later]
    assert len(new) == len(later)
    check["specification"]["facts"] = [fact for fact in check["specification"]["facts"] if fact not in new]
    budget = check["specification"]["budget"]
    budget["conversion"], _, more = budget["conversion"].partition(". At this rate ")
    assert "expected to end with other swap values" in more


@pytest.mark.parametrize(
    "earlier",
    [
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("made", "made_by_0_2", "made_by_0_3", "made_by_0_4", "made_by_0_5", "made_by_0_6")
        ),
        "made_by_0_7",
    ],
)
def test_a_work_folder_of_an_earlier_version_is_gone_on_with_and_nothing_is_spent(earlier, request, command):
    made = request.getfixturevalue(earlier)
    draw = reopen(TopDownPlan.from_toml(made / "topdown.toml"), made / "work")
    assert draw.entry is not None and draw.for_release
    before = Ledger.open(made / "topdown.ledger").total().specification.budget.number
    ended = command(
        "release", made / "topdown.toml", "--out", made / "again", "--work", made / "work",
        "--ledger", made / "topdown.ledger",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "nothing is spent again" in ended.out
    ledger = Ledger.open(made / "topdown.ledger")
    assert ledger.total().specification.budget.number == before
    entry = ledger.entries()[0]
    assert entry.specification.budget.number == 0.75
    assert [one.folder.name for one in entry.finishes] == ["topdown", "again"]
    assert all(verdict.holds for verdict in stirred.verify(made / "again"))


@pytest.mark.slow
@pytest.mark.parametrize("earlier", ["made", "made_by_0_2"])
def test_a_ledger_of_an_earlier_version_counts_on(earlier, request, command):
    made = request.getfixturevalue(earlier)
    ledger = Ledger.open(made / "swap.ledger")
    assert len(ledger.entries()) == 1
    assert command("release", made / "swap.toml", "--out", made / "new", "--ledger", made / "swap.ledger").code == 0
    assert len(ledger.entries()) == 2
    assert ledger.entries()[0].specification == stirred.read(made / "swap")


@pytest.mark.slow
def test_a_wording_of_another_version_verifies_and_another_meaning_does_not(made, command):
    path, written = (
        made / "topdown" / "certificate.json",
        json.loads((made / "topdown" / "certificate.json").read_text()),
    )
    for change, code in ((("words", "said otherwise"), 4), (("id", "another-finding"), 1)):
        fields = json.loads(json.dumps(written))
        fields["specification"]["findings"][0][change[0]] = change[1]
        path.write_text(json.dumps(fields))
        (made / "topdown" / "specification.json").write_text(json.dumps(fields["specification"]))
        (made / "topdown" / "manifest.json").unlink()
        write_manifest(made / "topdown")
        assert command("verify", made / "topdown").code == code
