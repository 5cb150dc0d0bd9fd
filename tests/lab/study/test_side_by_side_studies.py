"""The table of a study: every number against the mechanism, the check or the theorem that it comes from."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from stirred import check, errors
from stirred.lab.study import Asked, StudyData, generated, study
from stirred.lab.study.contenders import (
    EXACT,
    NO_BOUND,
    THEOREM,
    UNPROVED,
    contender,
    exact_loss,
)
from stirred.lab.study.side_by_side import GENERATED_NOTE, NOTE, _source
from stirred.lab.study.swappers import NoVacuousSwaps, PerturbedSwap, RecordSwap, Targeted2010
from stirred.loss import swap_power_curve
from stirred.noise import SeededSource
from stirred.reports.figures import draw as draw_picture
from stirred.swap.checking.revealing import two_margins
from stirred.swap.data.dataset import load
from stirred.swap.drawing import draw as draw_swap
from stirred.swap.law.exposed_pairs import stratum_loss
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable
from stirred.topdown.drawing import draw_into
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.presets import preset

MASSACHUSETTS = generated("massachusetts-1940", scale=0.003)
TABLE = "dwellings by county, tenure"


def psa(rate: str, **more) -> SwapPlan:
    return SwapPlan(
        unit="dwelling", rate=rate, match=["state", "household_size"], swap=["county"], hold=["tenure"], id="serial",
        **more,
    )  # fmt: skip


PAIRWISE = Targeted2010(
    areas=("county",), region="state", match=("household_size",), unique=("household_size", "tenure"), unit="dwelling"
)
RECORDS = RecordSwap(hierarchy=("county",), similar=(("state", "household_size"),), risk_variables=("tenure",))


@pytest.fixture(scope="module")
def found():
    contenders = {"psa": psa("0.1"), "pairs": PAIRWISE, "records": RECORDS}
    return study(
        contenders, MASSACHUSETTS, tables=[["county", "tenure"], ["household_size", "tenure"]], draws=6, seed=7,
        unique_on=["county", "household_size", "tenure"],
    )  # fmt: skip


def alone_in_any(frame: pl.DataFrame, margins: list[list[str]]) -> int:
    """Rows that are the only one with their values on some of these lists of columns, counted row by row."""
    alone: set[int] = set()
    for columns in margins:
        values = frame.select(columns).rows()
        often = Counter(values)
        alone |= {number for number, value in enumerate(values) if often[value] == 1}
    return len(alone)


def counts(frame: pl.DataFrame) -> dict[tuple[str, str], int]:
    return {(a, b): n for a, b, n in frame.group_by("county", "tenure").len().iter_rows()}


def test_errors_are_those_of_the_draws_of_the_mechanism_itself(found):
    source = _source(7, "psa", None)
    truth = counts(MASSACHUSETTS.tables["dwellings"])
    by_draw, changed = [], []
    for _ in range(6):
        made = draw_swap(psa("0.1"), MASSACHUSETTS.tables["dwellings"], source=source)
        released = counts(made.frame())
        assert set(released) <= set(truth)
        by_draw.append([released.get(cell, 0) - true for cell, true in truth.items()])
        changed.append(np.count_nonzero(made.table["county"].codes != made.dataset.table["county"].codes))
    error = np.array(by_draw)
    whole = found["psa"].whole(TABLE)
    assert whole.cells == len(truth) == 28
    assert whole.mean_absolute.value == pytest.approx(np.abs(error).mean())
    assert whole.root_mean_square.value == pytest.approx(math.sqrt((error**2).mean()))
    assert whole.relative.value == pytest.approx(np.mean(np.abs(error) / np.array(list(truth.values()))))
    assert found["psa"].changed.value == pytest.approx(np.mean(changed))
    barnstable = next(part for part in found["psa"].tables[TABLE] if part.name == "Barnstable").errors
    own = [number for number, (county, _) in enumerate(truth) if county == "Barnstable"]
    assert barnstable.cells == 2 and barnstable.mean_absolute.value == pytest.approx(np.abs(error[:, own]).mean())


def test_tables_that_are_kept_have_no_error(found):
    for one in found.contenders:
        assert one.whole("dwellings by household_size, tenure").root_mean_square.value == 0


def test_guarantee_and_leakage_are_those_of_the_check(found):
    known, checked = found["psa"].known, check(psa("0.1"), MASSACHUSETTS.tables["dwellings"])
    assert known.losses[0].value == checked.epsilon and known.losses[0].kind == THEOREM
    assert known.leakage.determined == checked.revealing.counts.determined_share
    assert known.leakage.guessed == checked.revealing.counts.guessed_share
    frame = MASSACHUSETTS.tables["dwellings"]
    assert known.leakage.unique * frame.height == pytest.approx(
        alone_in_any(frame, [["state", "household_size", "tenure"], ["state", "household_size", "county"]])
    )
    sizes = checked.strata.sizes[checked.strata.changeable].tolist()
    assert known.power == pytest.approx(float(swap_power_curve(sizes, "0.1").power(0.05)))


def test_the_pairwise_swap_keeps_the_same_counts_and_promises_nothing(found):
    ours, theirs = found["psa"].known, found["pairs"].known
    assert theirs.leakage == ours.leakage
    assert theirs.losses[0].kind == NO_BOUND and math.isinf(theirs.losses[0].value) and theirs.power == 1
    assert found["pairs"].uniques_in_place.value < 0.2 < 0.8 < found["psa"].uniques_in_place.value


def test_numbers_come_again_with_the_seed_and_do_not_depend_on_who_else_is_there(found):
    again = study({"pairs": PAIRWISE}, MASSACHUSETTS, tables=[["county", "tenure"]], draws=6, seed=7)
    assert again["pairs"].whole(TABLE) == found["pairs"].whole(TABLE)
    other = study({"pairs": PAIRWISE}, MASSACHUSETTS, tables=[["county", "tenure"]], draws=6, seed=8)
    assert other["pairs"].whole(TABLE) != found["pairs"].whole(TABLE)


def test_without_a_seed_the_operating_system_is_asked():
    first, second = (
        study({"psa": psa("0.5")}, MASSACHUSETTS, tables=[["county", "tenure"]], draws=2)["psa"].whole(TABLE)
        for _ in range(2)
    )
    assert first.mean_absolute != second.mean_absolute  # two of four draws of 3,433 records alike: far below 1e-9


@pytest.mark.slow
def test_the_systematic_error_is_that_of_the_exact_expectation():
    plan = psa("0.3")
    found = study({"psa": plan}, MASSACHUSETTS, tables=[["county", "tenure"]], draws=150, seed=3)["psa"].whole(TABLE)
    (expected,) = check(plan, MASSACHUSETTS.tables["dwellings"], tables=[["county", "tenure"]]).tables
    bias = expected.mean - expected.true
    exact = math.sqrt(np.mean(bias**2))
    whole = math.sqrt(np.mean(bias**2 + expected.variance))
    # Seven standard errors of means over 150 draws of 28 cells: far below 1e-9.
    assert abs(found.systematic.value - exact) <= 7 * found.systematic.error
    assert abs(found.root_mean_square.value - whole) <= 7 * found.root_mean_square.error
    assert found.systematic.error < exact / 20


# -- exact losses --------------------------------------------------------------------------------------------


def few() -> StudyData:
    rows = [(size, county, tenure) for size in (1, 2) for county in "AB" for tenure in ("own", "rent")] * 2
    frame = pl.DataFrame(rows, schema=["size", "county", "tenure"], orient="row")
    return StudyData({"households": frame}, "households", ("county",))


def test_the_exact_loss_of_few_records_stands_beside_the_theorem():
    data = few()
    plan = SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate="0.05", allow=["few-change"])
    known = contender("psa", plan).known(data)
    assert [loss.kind for loss in known.losses] == [THEOREM, EXACT]
    assert known.losses[1].value == stratum_loss((4, 4), (4, 4), Fraction(1, 20)) < known.losses[0].value
    found = study({"psa": plan}, data, tables=[["county", "tenure"]], draws=2, seed=1)
    assert "exact loss of this universe" in str(found)


def test_no_exact_loss_is_told_where_a_stratum_is_too_large():
    assert exact_loss(two_margins(load(psa("0.1"), MASSACHUSETTS.tables["dwellings"])), Fraction(1, 10)) is None


def test_rates_by_rule_and_nothing_to_change_have_their_own_power():
    data = few()
    rules = [{"where": {"tenure": ["own"]}, "rate": "0.4"}, {"otherwise": True, "rate": "0.2"}]
    by_rule = SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rates=rules)
    known = contender("rules", by_rule).known(data)
    assert len(known.losses) == 1 and 0.05 < known.power < 1
    nothing = SwapPlan(match=["size", "tenure"], swap=["county"], hold="rest", rate="0.1")
    frame = data.tables["households"].with_columns(extra=pl.lit("same"))
    still = StudyData({"households": frame}, "households", ("county",))
    assert contender("nothing", nothing).known(still).power == 0.05


# -- linked rows and TopDown ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def country() -> StudyData:
    return generated("country", persons=1_500, states=1, seed=4)


def teaching(country: StudyData) -> TopDownPlan:
    races = sorted(country.tables["persons"]["race"].unique())
    return preset("teaching", {"race": races, "adult": ["no", "yes"]}, country.geography, nation=True)


LINKED = SwapPlan(
    unit="household", rate="0.2", match=["state", "adults", "minors"], swap=["county", "tract", "block_group", "block"],
    hold=["race"], id="residence", most_unchangeable=1,
    linked=[{"name": "persons", "link": "residence", "hold": ["state", "race", "adult", "sex"]}],
)  # fmt: skip
PAIRS = Targeted2010(
    areas=("county", "tract", "block_group", "block"), region="state", match=("adults", "minors"), rate=0.2
)


def test_linked_rows_follow_their_record_in_simulators_as_in_plans(country):
    (made,) = contender("pairs", PAIRS).draws(country, 1, SeededSource(1))
    homes = made.tables["households"].select("residence", *(f"{name}" for name in PAIRS.areas))
    people = made.tables["persons"].select("residence", *PAIRS.areas)
    joined = people.join(homes, on="residence", suffix="_home")
    assert all(joined[name].equals(joined[f"{name}_home"], check_names=False) for name in PAIRS.areas)
    assert made.changed["block"].any() and not people.equals(country.tables["persons"].select(people.columns))
    before = country.tables["persons"]
    assert made.tables["persons"].drop(*PAIRS.areas).equals(before.drop(*PAIRS.areas))


def test_plans_and_simulators_with_the_same_counts_reveal_the_same(country):
    ours, theirs = contender("psa", LINKED).known(country), contender("pairs", PAIRS).known(country)
    assert ours.leakage == theirs.leakage and ours.leakage.unique > 0


def test_uniques_are_followed_in_the_columns_that_they_are_unique_on():
    # 240 homes in 4 counties of 3 tracts; a third of the rents are those of one home in its county.
    county, tract = [f"c{number % 4}" for number in range(240)], [f"t{number % 12}" for number in range(240)]
    rent = [number if number % 3 == 0 else 0 for number in range(240)]
    before = pl.DataFrame({"county": county, "tract": tract, "rent": rent, "size": [1] * 240})
    data = StudyData({"homes": before}, "homes", ("county", "tract"))
    pairs = Targeted2010(areas=("county", "tract"), match=("size",), rate=0.5)
    found = study({"pairs": pairs}, data, tables=[["size"]], draws=1, seed=3, unique_on=["county", "rent"])
    (made,) = contender("pairs", pairs).draws(data, 1, _source(3, "pairs", None))
    after = made.tables["homes"]
    other_county, other_tract = (
        {row for row in range(240) if before[name][row] != after[name][row]} for name in ("county", "tract")
    )
    unique = {row for row in range(240) if rent[row]}
    assert unique & other_county < unique & (other_county | other_tract) < unique  # some move within their county
    assert found.unique == len(unique)
    assert found["pairs"].uniques_in_place.value == pytest.approx(1 - len(unique & other_county) / len(unique))
    assert found["pairs"].changed.value == len(other_county | other_tract)
    for label in ("records with another county or tract ", f"uniques still in their county ({len(unique)}) "):
        assert label in str(found)
    assert json.loads(found.to_json())["uniques_are_followed_in"] == ["county"]
    elsewhere = study({"pairs": pairs}, data, tables=[["size"]], draws=1, seed=3, unique_on=["rent"])
    assert f"uniques still in their county and\n  tract ({len(unique)}) " in str(elsewhere)


def with_persons_as_text(data: StudyData, columns: list[str]) -> pl.DataFrame:
    """The households with one more column, ``inside``: these columns of all their persons, in some fixed order."""
    people: dict[str, list[tuple[str, ...]]] = {}
    for home, *values in data.tables["persons"].select(["residence", *columns]).rows():
        people.setdefault(home, []).append(tuple(values))
    inside = [str(sorted(people[home])) for home in data.tables["households"]["residence"]]
    return data.tables["households"].with_columns(inside=pl.Series(inside))


def test_a_record_counts_once_that_is_alone_in_a_published_count_of_either_kind(country):
    whole = with_persons_as_text(country, ["state", "race", "adult", "sex"])
    stays = ["state", "adults", "minors", "race", "inside"]
    moves = ["state", "adults", "minors", *PAIRS.areas]
    alone = alone_in_any(whole, [stays, moves])
    # Either margin alone has fewer, and their sum counts some households twice.
    assert alone_in_any(whole, [stays]) < alone < alone_in_any(whole, [stays]) + alone_in_any(whole, [moves])
    for one in (LINKED, PAIRS):
        assert contender("one", one).known(country).leakage.unique == pytest.approx(alone / whole.height)


def numbered(country: StudyData) -> StudyData:
    """The same households, whose persons have ids of their own."""
    people = country.tables["persons"].with_row_index("person_id")
    return dataclasses.replace(country, tables={**country.tables, "persons": people})


def test_ids_of_linked_rows_are_no_published_values(country):
    expected = contender("pairs", PAIRS).known(country).leakage
    assert expected.unique < 0.9
    data = numbered(country)
    assert contender("pairs", PAIRS).known(data).leakage.unique == 1  # nobody has said that they are ids
    told = dataclasses.replace(data, ids={"persons": ("person_id",)})
    assert contender("pairs", PAIRS).known(told).leakage == expected
    linked = [{"name": "persons", "link": "residence", "id": "person_id", "hold": ["state", "race", "adult", "sex"]}]
    plan = LINKED.model_copy(update={"linked": tuple(LinkedTable(**one) for one in linked)})
    found = study({"pairs": PAIRS, "psa": plan}, data, tables=[["adults", "race"]], draws=1, seed=1)
    assert found["pairs"].known.leakage == found["psa"].known.leakage == expected


def test_ids_name_columns_of_linked_tables(country):
    with pytest.raises(errors.StirredError, match="person_id"):
        dataclasses.replace(country, ids={"persons": ("person_id",)})
    with pytest.raises(errors.StirredError, match="linked table"):
        dataclasses.replace(country, ids={"households": ("residence",)})


def test_simulators_keep_linked_rows_with_their_record(country):
    kept = [str(one) for one in contender("pairs", PAIRS).known(country).specification.multiverse.invariants]
    assert kept[0].endswith(", each with all of its rows in 'persons'") and "rows" not in kept[1]
    assert "rows" not in str(contender("pairs", PAIRWISE).known(MASSACHUSETTS).specification.multiverse.invariants)


def test_alone_in_an_invariant_of_topdown_is_counted_over_all_invariants():
    # Alone are the adult of S, who is alone in A2 too; the person in B1; and the adult of U.
    places = [("S", "A1"), ("S", "A2"), ("T", "B1"), ("T", "B2"), ("U", "C1")]
    people = [*[("S", "A1", "no")] * 4, ("S", "A2", "yes"), ("T", "B1", "no"), *[("T", "B2", "yes")] * 2]
    people += [*[("T", "B2", "no")] * 2, ("U", "C1", "yes"), *[("U", "C1", "no")] * 2]
    persons = pl.DataFrame(people, schema=["state", "county", "adult"], orient="row").with_columns(race=pl.lit("a"))
    geography = pl.DataFrame(places, schema=["state", "county"], orient="row")
    data = StudyData({"persons": persons, "geography": geography}, "persons", ("state", "county"))
    kept = [{"table": "persons", "level": "state", "by": ["adult"]}, {"table": "persons", "level": "county"}]
    domains = {"race": ["a", "b"], "adult": ["no", "yes"]}
    plan = preset("teaching", domains, ("state", "county"), nation=True, invariants=kept)
    margins = [["state", "adult"], ["county"]]
    assert [alone_in_any(persons, one) for one in (margins[:1], margins[1:], margins)] == [2, 2, 3]
    assert contender("topdown", plan).known(data).leakage.unique == pytest.approx(3 / len(people))


def test_topdown_is_measured_as_it_is_released(country, tmp_path):
    plan = teaching(country)
    (made,) = contender("topdown", plan).draws(country, 1, SeededSource(11))
    folder = tmp_path / "work"
    folder.mkdir()
    tables = {"persons": country.tables["persons"], "geography": country.tables["geography"]}
    released = draw_into(folder, plan, tables, source=SeededSource(11)).finish()
    by_block = released.counts("persons", "block", ("race",))
    names = released.draw.spine.names[-1].to_pylist()
    races = plan.table("persons").attributes[0].values
    counted = {(a, b): n for a, b, n in made.tables["persons"].group_by("block", "race").len().iter_rows()}
    for row, block in enumerate(names):
        for column, race in enumerate(races):
            assert counted.get((block, race), 0) == by_block[row, column]
    found = study(
        {"topdown": plan, "psa": LINKED}, country,
        tables=[Asked(("block", "race"), "persons"), ["adults", "race"]], draws=2, seed=1,
    )  # fmt: skip
    assert found["topdown"].changed is None and found["topdown"].whole("households by adults, race") is None
    assert found["topdown"].known.losses[0].budget == "rho" and 0.05 < found["topdown"].known.power < 1
    blocks = country.tables["geography"].height
    assert found["topdown"].whole("persons by block, race").cells == blocks * len(races)
    assert found["psa"].whole("persons by block, race").cells == blocks * len(races)
    assert "not released" in str(found)


# -- how it is shown -----------------------------------------------------------------------------------------


def test_the_first_line_says_who_may_see_it(found, tmp_path):
    assert str(found).startswith(GENERATED_NOTE) and not found.note.startswith("CONFIDENTIAL")
    given = study({"psa": SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate="0.3")}, few(),
                  tables=[["county", "tenure"]], draws=2, seed=1)  # fmt: skip
    assert str(given).startswith(NOTE) and json.loads(given.to_json())["note"] == NOTE
    given.write(tmp_path / "out")
    assert (tmp_path / "out" / "CONFIDENTIAL.txt").read_text().strip() == NOTE
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "out" / "certificate.json").exists()


def test_text_json_and_csv_have_the_same_numbers(found):
    fields = json.loads(found.to_json())
    ours = fields["contenders"][0]
    whole = found["psa"].whole(TABLE)
    assert ours["name"] == "psa" and ours["tables"][TABLE][0]["mean_absolute"] == whole.mean_absolute.value
    assert ours["losses"][0] == {"kind": "theorem", "budget": "epsilon", "value": found["psa"].known.losses[0].value}
    assert fields["contenders"][1]["losses"][0]["value"] is None
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    (row,) = [
        one for one in rows
        if (one["contender"], one["table"], one["part"], one["measure"]) == ("psa", TABLE, "all cells", "mean_absolute")
    ]  # fmt: skip
    assert float(row["value"]) == pytest.approx(whole.mean_absolute.value, rel=1e-5)
    assert str(whole.mean_absolute) in str(found)
    for words in (
        "epsilon infinite",
        "no bound",
        "records with another county ",
        "uniques still in their county (",
        "kept exactly",
        "bias, true count",
    ):
        assert words in str(found)


def test_what_holds_true_numbers_does_not_show_them(found):
    assert (
        "print it" in repr(found)
        and "confidential" in repr(found["psa"])
        and "confidential" in repr(found["psa"].known)
    )
    assert repr(MASSACHUSETTS).endswith("confidential and not shown>")


def test_ids_that_are_used_twice_are_refused():
    frame = pl.DataFrame({"id": [1, 1], "county": ["A", "B"]})
    with pytest.raises(errors.StirredError) as refusal:
        StudyData({"homes": frame, "persons": frame}, "homes", ("county",), "id", {"persons": "id"})
    assert refusal.value.kind == "duplicate-id"


def test_the_picture_has_a_bar_for_each_table_and_contender(found):
    (picture,) = found.pictures()
    assert len(picture.bars) == 6
    assert {bar.name.partition(":")[0] for bar in picture.bars} == {"psa", "pairs", "records"}
    assert "pairs: epsilon infinite" in [bar.name for bar in picture.bars]
    assert "cannot be compared" in picture.caption
    draw_picture(picture).to_dict()


def test_what_cannot_be_studied_is_refused_with_its_name():
    tables = [["county", "tenure"]]
    with pytest.raises(errors.StudyError, match="'stops' cannot be studied") as refusal:
        study({"stops": psa("0.1", most_unchangeable=0)}, small(), tables=tables, draws=1, seed=1)
    assert refusal.value.kind == "study-part"
    for bad in ({"draws": 0}, {"draws": True}, {"tables": [[]]}, {"contenders": {}}):
        options = {"contenders": {"psa": psa("0.1")}, "tables": tables, "draws": 1} | bad
        with pytest.raises(errors.StudyError):
            study(options.pop("contenders"), MASSACHUSETTS, **options)
    with pytest.raises(errors.StudyError, match="'rooms'") as refusal:
        study({"psa": psa("0.1")}, MASSACHUSETTS, tables=[["county", "rooms"]], draws=1)
    assert refusal.value.kind == "study-column"


def small() -> StudyData:
    """Some household sizes occur once, so that a few records can never change."""
    return generated("massachusetts-1940", scale=0.0002)


def test_variants_can_stand_beside_plans():
    swappers = {
        "no vacuous": NoVacuousSwaps(match=("state", "household_size"), swap=("county",), rate="0.1"),
        "perturbed": PerturbedSwap(
            match=("state", "household_size"), swap=("county",), rate="0.1", columns=("tenure",), probability="0.1"
        ),
    }
    found = study(swappers, MASSACHUSETTS, tables=[["household_size", "tenure"]], draws=2, seed=1)
    assert found["no vacuous"].whole("dwellings by household_size, tenure").root_mean_square.value == 0
    assert found["perturbed"].whole("dwellings by household_size, tenure").root_mean_square.value > 0
    assert found["perturbed"].known.leakage is None and found["perturbed"].known.power < 1.0001
    assert found["no vacuous"].known.losses[0].kind == UNPROVED and found["perturbed"].known.losses[0].kind == THEOREM
