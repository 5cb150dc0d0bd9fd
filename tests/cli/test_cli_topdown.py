"""TopDown from the command line: a generated census, check, release, resume, verify, tabulate, demo."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from stirred.releases.ledger.ledger import Ledger
from stirred.spec import Specification
from stirred.topdown import TopDownPlan, drawing


@pytest.fixture(scope="module")
def census(tmp_path_factory) -> Path:
    """A small generated census with the teaching plan."""
    from stirred.tables.synthetic.population import DOMAINS, Population
    from stirred.topdown.plan.presets import preset

    folder = tmp_path_factory.mktemp("census")
    Population(3_000, seed=2).write(folder)
    files = {"geography": "blocks.parquet", "persons": "persons.parquet"}
    plan = preset("teaching", DOMAINS, dataset="a small census", chosen_from="public").reading(files)
    (folder / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    return folder


def test_a_population_is_made_with_a_plan_that_fits_it(tmp_path, command):
    ended = command("population", tmp_path / "country", "--persons", 500, "--seed", 3, "--preset", "teaching")
    assert ended.code == 0 and "stirred check" in ended.out
    assert pl.read_parquet(tmp_path / "country" / "persons.parquet").height == 500
    again = command("population", tmp_path / "again", "--persons", 500, "--seed", 3, "--preset", "teaching")
    assert again.code == 0
    for name in ("persons.parquet", "blocks.parquet", "units.parquet", "facilities.parquet", "plan.toml"):
        assert (tmp_path / "country" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    taken = command("population", tmp_path / "again")
    assert taken.code == 2 and "exists" in taken.err
    assert command("population", tmp_path / "few", "--persons", 5).code == 2
    assert not (tmp_path / "few").exists()
    assert command("check", tmp_path / "country" / "plan.toml").code == 0


def test_several_states_have_a_nation_above_them(tmp_path, command):
    command("population", tmp_path / "country", "--persons", 4_000, "--states", 3)
    plan = TopDownPlan.from_toml(tmp_path / "country" / "plan.toml")
    assert plan.spine.root == "us" and plan.spine.absent == ()


def test_a_check_says_what_a_release_would_be(census, command, tmp_path):
    ended = command("check", census / "plan.toml", "--specification", tmp_path / "limit.json")
    assert ended.code == 0
    assert "CONFIDENTIAL" in ended.out and "the number of 'persons' in each state" in ended.out
    assert "Expected standard error" in ended.out and "location within county" in ended.out
    assert "Forecast of the release" in ended.out and "the data keep every constraint" in ended.out
    assert Specification.from_json((tmp_path / "limit.json").read_text()).budget.number == Fraction(5, 6)
    fields = json.loads(command("check", census / "plan.toml", "--json").out)
    assert fields["confidential"] is True and fields["geounits"]["state"] == 1
    assert fields["measurements"] == sum(fields["geounits"].values()) * (1 + 8 + 2 + 16)
    assert {one["concern"] for one in fields["concerns"]} >= {"race", "adult", "location within block_group"}
    total = next(one for one in fields["expected_errors"] if one["query"] == "total" and one["level"] == "tract")
    assert total["measured"] == pytest.approx((1 / (1 / 6 / 2)) ** 0.5) and total["combined"] < total["measured"]


def test_options_of_swapping_are_refused(census, command, tmp_path):
    assert "--rates" in command("check", census / "plan.toml", "--rates", "0.1").err
    ended = command("release", census / "plan.toml", "--out", tmp_path / "out", "--allow", "x")
    assert ended.code == 2 and "--allow" in ended.err


def test_memory_that_is_not_there_is_foreseen(census, command, monkeypatch):
    monkeypatch.setattr("stirred.topdown.checking.plan_check.available_memory", lambda: 1000)
    ended = command("check", census / "plan.toml")
    assert ended.code == 2 and "STOP topdown-memory" in ended.out


def test_release_verify_tabulate_and_explain(census, command, tmp_path):
    out = tmp_path / "out"
    command("ledger", "init", tmp_path / "c.ledger", "--dataset", "a small census")
    ended = command(
        "release",
        census / "plan.toml",
        "--out",
        out,
        "--ledger",
        tmp_path / "c.ledger",
        "--confidential",
        tmp_path / "e",
    )
    assert ended.code == 0, ended.err
    assert "3,000 persons" in ended.out and "rho 0.84" in ended.out and "Recorded in" in ended.out
    assert not (tmp_path / "out-work").exists() and (tmp_path / "e" / "errors.csv").exists()
    verified = command("verify", out)
    assert verified.code == 0 and "FAILS" not in verified.out and "rho recomputed" in verified.out
    table = command("tabulate", out, "--by", "state")
    assert table.out.splitlines()[1].endswith(",3000")
    said = " ".join(table.err.split())
    assert said.startswith("Note: these are counts of released rows.") and "small counts too large on average" in said
    assert "for a single small place or count they are closer to the truth all the same" in said
    page = command("report", out, "--out", tmp_path / "page.html")
    assert page.code == 0, page.err
    text = (tmp_path / "page.html").read_text()
    assert "stirred estimate . --level block_group --by " in text and "Estimates combine all measurements" in text
    assert command("tabulate", out, "--by", "age").code == 2
    assert command("tabulate", out, "--by", "race", "--table", "units").code == 2
    explained = command("explain", out)
    assert explained.code == 0 and "the number of persons by state" in explained.said
    concerned = command("explain", out, "--concern", "adult")  # the division of the budget is in the certificate
    assert concerned.code == 0 and "one person has another adult" in concerned.said
    assert command("lint", out).code in (0, 1)
    *verdicts, seal = command("ledger", "verify", tmp_path / "c.ledger").out.splitlines()
    assert all(line.startswith("holds") for line in verdicts) and seal.startswith("Last seal: ")


def test_a_fit_that_is_interrupted_goes_on_without_spending(census, command, tmp_path, monkeypatch):
    out, ledger = tmp_path / "out", tmp_path / "c.ledger"
    command("ledger", "init", ledger, "--dataset", "a small census")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(drawing, "fit_table", stop)
        ended = command("release", census / "plan.toml", "--out", out, "--ledger", ledger)
    assert ended.code == 130 and "the same command continues from it and spends nothing" in ended.said
    assert "entry 1 of" in ended.said
    again = command("release", census / "plan.toml", "--out", out, "--ledger", ledger)
    assert again.code == 0 and "nothing is spent again" in again.out
    assert Ledger.open(ledger).total().specification.budget.number == Fraction(5, 6)


def test_a_named_work_folder_is_kept(census, command, tmp_path):
    ended = command("release", census / "plan.toml", "--out", tmp_path / "out", "--work", tmp_path / "work")
    assert ended.code == 0 and "is kept in" in ended.out and (tmp_path / "work" / "draw.json").exists()
    second = command("release", census / "plan.toml", "--out", tmp_path / "second", "--work", tmp_path / "work")
    assert second.code == 0 and "Continuing from the draw" in second.out
    swap = tmp_path / "plan.toml"
    swap.write_text(
        'stirred = 1\nmechanism = "swap"\nrate = 0.5\nswap = ["a"]\nhold = ["b"]\n[input]\npath = "x.csv"\n'
    )
    assert "--work" in command("release", swap, "--out", tmp_path / "third", "--work", tmp_path / "work").err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('levels = [\n    "state"', 'levels = [\n    "county",\n    "state"'), "name of its own"),
        (('"persons.parquet"', '"nowhere.parquet"'), "nowhere.parquet"),
        (('shares = "1/2"', 'shares = "1/3"'), "5/6"),
        (('level = "state"', 'level = "nation"'), "nation"),
        (('rho = "1"', 'rho = "0"'), "above 0"),
        (('    "block",\n]', '    "blok",\n]'), "blok"),
    ],
)
def test_plans_that_do_not_fit_are_refused_in_words(census, command, tmp_path, change, words):
    text = (census / "plan.toml").read_text(encoding="utf-8")
    assert change[0] in text, text
    bad = census / f"bad-{abs(hash(change))}.toml"
    bad.write_text(text.replace(*change), encoding="utf-8")
    for ended in (command("check", bad), command("release", bad, "--out", tmp_path / "out")):
        assert ended.code == 2 and words in ended.said and "Traceback" not in ended.err
    assert not (tmp_path / "out").exists() and not (tmp_path / "out-work").exists()


def test_the_demonstration_shows_released_beside_true_totals(command, tmp_path, monkeypatch):
    monkeypatch.setattr("stirred.topdown.demo.PERSONS", 3_000)
    ended = command("demo", "topdown", "--out", tmp_path / "shown")
    assert ended.code == 0, ended.err
    assert "block_group" in ended.out and "exact" in ended.out and "FAILS" not in ended.out
    assert command("verify", tmp_path / "shown" / "release").code == 0


def test_estimates_from_a_release(census, command, tmp_path):
    out = tmp_path / "out"
    command("release", census / "plan.toml", "--out", out)
    county = command("estimate", out, "--level", "county", "--by", "adult")
    assert county.code == 0 and "95% interval" in county.out and "Known exactly and used" in county.out
    assert "cannot occur" not in county.err
    state = command("estimate", out, "--level", "state", "--confidence", "0.5")
    assert state.out.splitlines()[1].split()[1:4] == ["3,000.0", "0.00", "3,000"]  # an invariant
    written = command("estimate", out, "--level", "county", "--by", "adult", "--json")
    rows = json.loads(written.out)["estimates"]
    assert {one["interval"] for one in rows} <= {"exact", "normal"} and all(one["covers"] >= 0.95 for one in rows)
    assert all(f"{kind}: " in county.out for kind in {one["interval"] for one in rows})
    tracts = pl.read_parquet(out / "measurements" / "geography.parquet")["tract"].unique().sort().to_list()
    union = command("estimate", out, *(word for name in tracts for word in ("--place", f"tract={name}")), "--sources")
    assert union.code == 0 and "3,000.0" in union.out and "no measurement is used" in union.out
    written = command("estimate", out, "--level", "block", "--where", "adult=yes", "--out", tmp_path / "blocks.csv")
    assert written.code == 0 and pl.read_csv(tmp_path / "blocks.csv").columns[1:3] == ["estimate", "standard_error"]
    long = command("estimate", out, "--level", "block", "--by", "race")
    assert "more; --out FILE writes all of them" in long.out


def test_shares_comparisons_and_regressions_from_a_release(census, command, tmp_path):
    out = tmp_path / "out"
    command("release", census / "plan.toml", "--out", out)
    places = pl.read_parquet(out / "measurements" / "geography.parquet")
    one, other = places["block_group"].unique().sort().to_list()[:2]
    shares = command("estimate", out, "--level", "county", "--by", "adult", "--share", "race", "--json")
    rows = json.loads(shares.out)
    assert rows["measure"] == "share of race" and rows["by"] == ["county", "adult", "race"]
    for adult in ("yes", "no"):
        assert sum(row["estimate"] for row in rows["estimates"] if row["adult"] == adult) == pytest.approx(1)
    total = command("estimate", out, "--level", "county", "--share", "county")
    assert total.code == 0 and "known" in total.out and "1.0000 to 1.0000" in total.out
    named = command("estimate", out, "--difference", f"block_group={one},{other}", "--by", "adult", "--json")
    apart = command(
        "estimate", out, "--place", f"block_group={one}", "--against", f"block_group={other}", "--difference", "places",
        "--by", "adult", "--json",
    )  # fmt: skip
    assert named.code == 0 and json.loads(named.out) == json.loads(apart.out)
    odds = command(
        "estimate", out, "--place", f"block_group={one}", "--against", f"block_group={other}", "--odds-ratio",
        "places;adult=yes,no", "--figures", tmp_path / "figures",
    )  # fmt: skip
    assert odds.code == 0 and "odds ratio yes:no" in odds.out and (tmp_path / "figures" / "estimates.svg").is_file()
    names = places["block"].to_list()
    pl.DataFrame({"block": names, "height": [at % 7 for at in range(len(names))]}).write_csv(tmp_path / "heights.csv")
    asked = "--level", "block", "--regress", "estimate ~ height", "--predictors", tmp_path / "heights.csv"
    fitted = command("estimate", out, *asked)
    assert fitted.code == 0 and "height" in fitted.out and "Assumed: true numbers lie about" in fitted.out
    written = command("estimate", out, *asked, "--no-scatter", "--out", tmp_path / "fit.csv")
    assert written.code == 0 and pl.read_csv(tmp_path / "fit.csv")["term"].to_list() == ["intercept", "height"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--level", "county", "--share", "height"), "height"),
        (("--level", "county", "--difference", "adult=yes"), "column=one,other"),
        (("--level", "county", "--difference", "adult=yes,perhaps"), "perhaps"),
        (("--level", "county", "--difference", "places"), "has --place, --against"),
        (("--place", "county=1", "--against", "tract", "--ratio", "places"), "level=name"),
        (("--level", "block", "--regress", "estimate ~ x"), "--regress needs --predictors FILE"),
        (("--level", "county", "--by", "adult", "--share", "adult", "--sources"), "--place"),
        (("--level", "county", "--place", "tract=1"), "either a level or places"),
        ((), "either a level or places"),
        (("--level", "parish"), "parish"),
        (("--place", "tract"), "level=name"),
        (("--place", "tract=1"), "has no unit '1'"),
        (("--level", "state", "--where", "adult=maybe"), "maybe"),
        (("--level", "state", "--table", "units"), "units"),
        (("--level", "state", "--confidence", "90"), "between 0 and 1"),
    ],
)
def test_questions_that_make_no_sense_are_refused(census, command, tmp_path_factory, words, said):
    out = census / "asked"
    if not out.exists():
        command("release", census / "plan.toml", "--out", out)
    ended = command("estimate", out, *words)
    assert ended.code == 2 and said in ended.said
    assert command("estimate", census, "--level", "state").code == 2
