"""Simulated targeted swappers: who is paired with whom, what each parameter does, and that nothing is promised."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from stirred import errors, verify
from stirred.errors import StirredError
from stirred.lab.study.swappers import RecordSwap, Simulated, Targeted2010
from stirred.lab.study.swappers.simulated import SIMULATION, encoded, weighted_order
from stirred.noise import SeededSource
from stirred.spec.specification import NOT_FOR_RELEASE

AREAS = ("county", "tract", "block")


def town(records: int = 6_000, key: int = 1) -> pl.DataFrame:
    """Households of two states; tract and block numbers are used again in other counties, as real ones are."""
    draw = np.random.default_rng(key)
    return pl.DataFrame(
        {
            "state": draw.choice(["E", "W"], records, p=[0.7, 0.3]),
            "county": draw.integers(0, 4, records),
            "tract": draw.integers(0, 4, records),
            "block": draw.integers(0, 5, records),
            "adults": draw.integers(1, 4, records),
            "minors": draw.integers(0, 3, records),
            "tenure": draw.choice(["owned", "rented"], records),
            "race": draw.choice(list("abcd"), records, p=[0.8, 0.17, 0.027, 0.003]),
            "imputed": draw.random(records) < 0.05,
        }
    )


TOWN = town()
TARGETED = Targeted2010(
    areas=AREAS, region="state", match=("adults", "minors", "tenure"), rate=0.04, rare=("race",),
    unique=("race",), unique_in="tract", imputed="imputed", nearby="tract",
)  # fmt: skip
RECORDS = RecordSwap(
    hierarchy=AREAS, similar=(("state", "adults", "minors"), ("state", "adults")), risk_variables=("race",)
)


def pairs(found: Simulated) -> tuple[np.ndarray, np.ndarray]:
    """The records that were swapped, and their partners."""
    moved = np.flatnonzero(found.giver != np.arange(len(found.giver)))
    return moved, found.giver[moved]


def alone(frame: pl.DataFrame, columns: list[str]) -> np.ndarray:
    return frame.select(pl.struct(columns).is_unique()).to_series().to_numpy()


def agree(frame: pl.DataFrame, columns, first, second) -> np.ndarray:
    values = frame.select(pl.struct(list(columns)).rank("dense")).to_series().to_numpy()
    return values[first] == values[second]


def kept(stated, before: pl.DataFrame, after: pl.DataFrame) -> bool:
    """Whether all invariants of a specification have the same counts before and after."""
    for invariant in stated.multiverse.invariants:
        by = list(invariant.by)
        if not before.group_by(by).len().sort(by).equals(after.group_by(by).len().sort(by)):
            return False
    return True


# -- what every targeted swapper does ------------------------------------------------------------------------


@pytest.mark.parametrize("swapper", [TARGETED, RECORDS, replace(RECORDS, k_anonymity=0)])
@pytest.mark.parametrize("key", range(3))
def test_everybody_is_in_one_pair_at_most_and_partners_agree_and_live_apart(swapper, key):
    found = swapper.simulate(TOWN, SeededSource(key))
    moved, partner = pairs(found)
    assert len(moved) > 100
    assert np.array_equal(found.giver[partner], moved)
    assert agree(TOWN, swapper.agreed, moved, partner).all()
    assert not agree(TOWN, ["state", *AREAS], moved, partner).any()
    for column in TOWN.columns:
        expected = TOWN[column].gather(found.giver.tolist()) if column in AREAS else TOWN[column]
        assert found.frame[column].equals(expected)
    assert found.changed == len(moved)


@pytest.mark.parametrize("swapper", [TARGETED, RECORDS])
def test_the_counts_that_the_specification_names_are_kept_and_finer_ones_are_not(swapper):
    stated, found = swapper.specification(TOWN), swapper.simulate(TOWN, SeededSource(5))
    assert kept(stated, TOWN, found.frame)
    by = ["block", "race"]
    assert not TOWN.group_by(by).len().sort(by).equals(found.frame.group_by(by).len().sort(by))


@pytest.mark.parametrize("swapper", [TARGETED, RECORDS])
def test_no_epsilon_is_promised_and_the_reasons_are_told(swapper):
    stated = swapper.specification(TOWN)
    assert stated.budget.number == math.inf and stated.fact["guarantee"] == "none"
    assert "no finite epsilon holds" in stated.budget.conversion and "in pairs" in stated.budget.conversion
    assert "seeing it excludes it" in stated.budget.conversion
    assert stated.marks == (SIMULATION,) and SIMULATION != NOT_FOR_RELEASE
    assert "vacuous-budget" in [finding.id for finding in stated.findings]


def test_a_reason_that_does_not_apply_is_not_told():
    plain = replace(TARGETED, unique=()).specification(TOWN).budget.conversion
    assert "excludes it" not in plain and "(2)" in plain and "(3)" not in plain
    assert "excludes it" not in replace(RECORDS, k_anonymity=0).specification(TOWN).budget.conversion


@pytest.mark.parametrize("swapper", [TARGETED, RECORDS])
def test_the_same_bits_give_the_same_swap_and_others_another(swapper):
    first, again, other = (swapper.simulate(TOWN, SeededSource(key)).giver for key in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("swapper", [TARGETED, RECORDS])
def test_what_a_simulator_gives_can_not_pass_for_a_release(swapper, tmp_path):
    found = swapper.simulate(TOWN, SeededSource(1))
    assert not hasattr(found, "write") and not hasattr(swapper, "write")
    assert "confidential" in repr(found) and "owned" not in repr(found)
    (tmp_path / "release").mkdir()
    found.frame.write_csv(tmp_path / "release" / "microdata.csv")
    with pytest.raises(StirredError) as refusal:
        verify(tmp_path / "release")
    assert refusal.value.kind == "not-a-release"
    (tmp_path / "release" / "specification.json").write_text(swapper.specification(TOWN).to_json())
    with pytest.raises(StirredError):
        verify(tmp_path / "release")


@pytest.mark.parametrize(
    "swapper",
    [
        Targeted2010(areas=("place",), region="copy", match=("copy_again",), rate=0.9),
        Targeted2010(areas=("place",), region="copy", match=("copy_again",), rate=0.9, unique=("held",)),
        RecordSwap(hierarchy=("place",), similar=(("copy",),), risk_variables=("copy", "held"), k_anonymity=2),
    ],
)
def test_some_files_of_the_universe_never_come_out_of_a_targeted_swap(swapper):
    def outputs(places: str) -> set[str]:
        copies = 400
        frame = pl.DataFrame({"held": list("012") * copies, "place": list(places) * copies}).with_columns(
            copy=pl.Series(np.repeat(np.arange(copies), 3))
        )
        frame = frame.with_columns(copy_again="copy")
        found = swapper.simulate(frame, SeededSource(1)).frame["place"].to_list()
        return {"".join(found[at : at + 3]) for at in range(0, len(found), 3)}

    # Households 0, 1, 2 at places A, B, C: a rotation needs three, so it comes out of its neighbour only.
    assert outputs("ABC") == {"BAC", "CBA", "ACB"}
    assert "BCA" in outputs("BAC") and "ABC" not in outputs("BCA") | outputs("ABC")


# -- the swap of 2010 ----------------------------------------------------------------------------------------


def test_the_share_that_is_swapped_stays_below_the_limit_of_each_state():
    plain = replace(TARGETED, unique=())
    for key in range(4):
        moved, _ = pairs(plain.simulate(TOWN, SeededSource(key)))
        for state in ("E", "W"):
            own = (TOWN["state"] == state).to_numpy()
            share = own[moved].sum() / own.sum()
            assert 0.035 < share <= 0.04


def test_a_household_that_is_unique_in_its_tract_moves_unless_it_is_imputed_or_has_no_partner():
    found = TARGETED.simulate(TOWN, SeededSource(3))
    moved = np.zeros(TOWN.height, dtype=bool)
    moved[pairs(found)[0]] = True
    unique = alone(TOWN, ["state", "county", "tract", "race"]) & ~TOWN["imputed"].to_numpy()
    assert unique.sum() > 5
    assert not (unique & ~moved).any()
    # Without the rule most of them stay: two or three in ten are selected as rare in their block.
    plain = np.zeros(TOWN.height, dtype=bool)
    plain[pairs(replace(TARGETED, unique=(), rare=()).simulate(TOWN, SeededSource(3)))[0]] = True
    assert (unique & ~plain).sum() > unique.sum() / 2


def test_uniques_move_beyond_the_limit():
    few = replace(TARGETED, unique_in="block", rate=0.001)
    moved, _ = pairs(few.simulate(TOWN, SeededSource(1)))
    unique = alone(TOWN, ["state", *AREAS, "race"]) & ~TOWN["imputed"].to_numpy()
    assert len(moved) > 0.001 * TOWN.height and len(moved) >= 0.9 * unique.sum()


def test_imputed_households_are_swapped_only_where_they_may_be_partners():
    imputed = TOWN["imputed"].to_numpy()
    for key in range(3):
        assert not imputed[pairs(TARGETED.simulate(TOWN, SeededSource(key)))[0]].any()
    allowed = replace(TARGETED, imputed_partners=True, priorities=("nearby",))
    moved, partner = pairs(allowed.simulate(TOWN, SeededSource(0)))
    assert imputed[moved].any() and not (imputed[moved] & imputed[partner]).any()


def test_rare_households_and_those_of_small_blocks_are_likelier():
    table = encoded(TOWN, TOWN.columns)
    rare = alone(TOWN, ["state", *AREAS, "race"]) & ~TOWN["imputed"].to_numpy()
    plain, weighted = (replace(TARGETED, rare_weight=weight).weights(table) for weight in (1.0, 7.0))
    assert np.allclose(weighted[rare] / plain[rare], 7) and np.array_equal(weighted[~rare], plain[~rare])
    assert np.array_equal(weighted == 0, TOWN["imputed"].to_numpy())
    sizes = TOWN.select(pl.len().over("state", *AREAS)).to_series().to_numpy()
    flat = replace(TARGETED, size_power=0.0, imputed=None, rare=()).weights(table)
    steep = replace(TARGETED, size_power=1.0, imputed=None, rare=()).weights(table)
    assert np.all(flat == 1) and np.allclose(steep * sizes, 1)


def test_blocks_with_many_imputed_households_are_selected_from_less():
    table = encoded(TOWN, TOWN.columns)
    share = TOWN.select(pl.col("imputed").mean().over("state", *AREAS)).to_series().to_numpy()
    with_it, without = (replace(TARGETED, imputed=name).weights(table) for name in ("imputed", None))
    own = ~TOWN["imputed"].to_numpy()
    assert np.allclose(with_it[own], (without * (1 - share))[own])


def test_partners_are_sought_where_the_priorities_say():
    near = replace(TARGETED, priorities=("nearby",)).simulate(TOWN, SeededSource(1))
    anywhere = replace(TARGETED, priorities=()).simulate(TOWN, SeededSource(1))
    shares = [agree(TOWN, ["state", "county", "tract"], *pairs(found)).mean() for found in (near, anywhere)]
    assert shares[0] > 0.8 and shares[1] < 0.2  # one tract of 16 in a state
    # With partners among the selected, as many are swapped as are selected; else nearly twice as many may be.
    among = replace(TARGETED, priorities=("selected",), unique=(), rate=0.1).simulate(TOWN, SeededSource(1))
    table = encoded(TOWN, TOWN.columns)
    weights = TARGETED.weights(table)
    risky = replace(TARGETED, priorities=("risk",), unique=()).simulate(TOWN, SeededSource(1))
    plain = replace(TARGETED, priorities=(), unique=()).simulate(TOWN, SeededSource(1))
    assert weights[pairs(risky)[0]].mean() > 1.2 * weights[pairs(plain)[0]].mean()
    assert len(pairs(among)[0]) > 0.095 * TOWN.height


def test_partners_are_outside_the_area_that_is_named():
    moved, partner = pairs(replace(TARGETED, outside="tract", nearby="county").simulate(TOWN, SeededSource(1)))
    assert not agree(TOWN, ["state", "county", "tract"], moved, partner).any()


def test_one_household_alone_with_its_kind_finds_nobody():
    two = pl.DataFrame({"county": ["A", "B", "B"], "size": [1, 2, 2], "race": ["a", "b", "c"]})
    swapper = Targeted2010(areas=("county",), match=("size",), unique=("race",), rate=0.5)
    found = swapper.simulate(two, SeededSource(1))
    assert found.changed == 0 and found.unmatched == 3 and found.frame.equals(two)


# -- record swapping -----------------------------------------------------------------------------------------


def test_who_few_share_its_risk_with_leaves_its_area_at_every_level():
    swapper = replace(RECORDS, swaprate=0.0)
    found = swapper.simulate(TOWN, SeededSource(2))
    moved = np.zeros(TOWN.height, dtype=bool)
    moved[pairs(found)[0]] = True
    stays = 0
    for level in range(3):
        area = list(AREAS[: level + 1])
        count = TOWN.select(pl.len().over(*area, "race")).to_series().to_numpy()
        must = count < 3
        stays += int((must & ~moved).sum())
    assert stays <= 3 * found.unmatched
    county = TOWN.select(pl.len().over("county", "race")).to_series().to_numpy() < 3
    first, second = np.flatnonzero(county & moved), found.giver[county & moved]
    assert len(first) and not agree(TOWN, ["county"], first, second).any()


def test_forced_swaps_come_on_top_of_the_rate():
    risky = replace(RECORDS, risk_variables=("race", "adults"))
    at_rate = replace(risky, k_anonymity=0).simulate(TOWN, SeededSource(2)).changed / TOWN.height
    forced = risky.simulate(TOWN, SeededSource(2)).changed / TOWN.height
    assert 0.04 < at_rate < 0.06 < forced


def test_the_rate_is_reached_in_every_narrowest_area_up_to_rounding_and_partners():
    found = replace(RECORDS, k_anonymity=0, swaprate=0.2).simulate(TOWN, SeededSource(4))
    targets = np.zeros(TOWN.height)
    targets[pairs(found)[0]] = 1
    by_area = TOWN.with_columns(swapped=pl.Series(targets)).group_by(AREAS).agg(pl.col("swapped").sum(), pl.len())
    # Half of the rate are selected in the area itself; of the other half, partners, some were selected too.
    assert np.all(by_area["swapped"].to_numpy() >= np.floor(0.1 * by_area["len"].to_numpy()))
    assert 0.17 < targets.mean() < 0.2


def test_a_second_profile_is_used_only_where_the_first_has_nobody():
    few = pl.DataFrame(
        {"county": ["A", "B", "B", "A"], "size": [1, 1, 2, 3], "group": ["g"] * 4, "race": ["u", "v", "w", "x"]}
    )
    swapper = RecordSwap(hierarchy=("county",), similar=(("group", "size"), ("group",)), risk_variables=("race",))
    for key in range(10):
        assert swapper.simulate(few, SeededSource(key)).giver.tolist() == [1, 0, 3, 2]
    alone = replace(swapper, similar=(("group", "size"),)).simulate(few, SeededSource(1))
    assert alone.giver.tolist() == [1, 0, 2, 3] and alone.unmatched == 2


def test_carried_columns_move_with_the_geography_and_others_stay():
    frame = TOWN.with_columns(zone=pl.col("block") + 100 * pl.col("tract"), note=pl.int_range(TOWN.height))
    swapper = replace(RECORDS, carry_along=("zone",))
    found = swapper.simulate(frame, SeededSource(1)).frame
    assert found["zone"].equals(found["block"] + 100 * found["tract"])
    assert found["note"].equals(frame["note"])
    assert kept(swapper.specification(frame), frame, found)


def test_partners_at_risk_are_taken_more_often():
    # One target in A, donors in B: half at risk (unique), half sharing their race with nine others.
    donors = [("B", f"u{number}") for number in range(10)] + [("B", "common")] * 10
    frame = pl.DataFrame([("A", "target"), *donors], schema=["county", "race"], orient="row").with_columns(g=pl.lit(1))
    swapper = RecordSwap(
        hierarchy=("county",), similar=(("g",),), risk_variables=("race",), k_anonymity=0, swaprate=0.1
    )
    taken = []
    for key in range(300):
        giver = swapper.simulate(frame, SeededSource(key)).giver
        if giver[0] != 0:
            taken.append(giver[0] <= 10)
    # A unique one is ten times as likely: 10/11 of the draws, of about 300. Ten standard deviations lie above 0.6.
    assert len(taken) > 100 and np.mean(taken) > 0.7


def test_an_order_by_weights_has_the_law_of_successive_draws():
    weights = np.array([1.0, 2.0, 5.0, 0.0])
    first = np.array([weighted_order(weights, SeededSource(key))[0] for key in range(4_000)])
    for record, chance in enumerate(weights / weights.sum()):
        # Binomial with 4,000 trials: seven standard deviations, below 1e-9.
        spread = math.sqrt(4_000 * chance * (1 - chance))
        assert abs((first == record).sum() - 4_000 * chance) <= 7 * spread


# -- bad parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: replace(TARGETED, areas=()),
        lambda: replace(TARGETED, rate=0.0),
        lambda: replace(TARGETED, rare_weight=0.5),
        lambda: replace(TARGETED, nearby="street"),
        lambda: replace(TARGETED, priorities=("selected", "selected")),
        lambda: replace(TARGETED, match=("adults", "block")),
        lambda: replace(RECORDS, hierarchy=()),
        lambda: replace(RECORDS, similar=((),)),
        lambda: replace(RECORDS, swaprate=1.0),
        lambda: replace(RECORDS, k_anonymity=-1),
        lambda: replace(RECORDS, similar=(("block",),)),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_words(make):
    with pytest.raises(errors.StudyError) as refusal:
        make()
    assert refusal.value.kind == "study-parameter" and refusal.value.remedy[0].isupper()


@pytest.mark.parametrize("swapper", [replace(TARGETED, rare=("colour",)), replace(RECORDS, risk_variables=("colour",))])
def test_a_column_that_is_not_there_is_named(swapper):
    for call in (lambda: swapper.simulate(TOWN, SeededSource(1)), lambda: swapper.specification(TOWN)):
        with pytest.raises(StirredError, match="colour"):
            call()
