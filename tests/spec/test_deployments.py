"""The deployments in the data files against the published tables, against the theorems, and against one another."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.errors import SpecificationError
from stirred.lab.reproduce.catalogue import Item, chosen, items, published
from stirred.loss.conversions import zcdp_to_approximate
from stirred.loss.divergences import normalised_renyi
from stirred.spec import Invariant, Specification, as_approximate, compose, flavors, per_respondent
from stirred.spec.blocks import lipschitz
from stirred.spec.exact import display
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names
from stirred.spec.order.finite_mechanisms import FiniteMechanism
from stirred.swap.law.theorem import epsilon

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "specifications.json").read_text(encoding="utf-8"))
DELTA = Fraction("1e-10")


def deployment_of(item: Item) -> str:
    """The deployment that a published epsilon of a swap is about."""
    percent = f"p{float(Fraction(item.inputs['rate'])) * 100:02.0f}"
    table = item.id.partition("/")[2].partition("/")[0]
    if table == "table-3.2":
        return f"psa-1940-ma-{percent}"
    if table == "section-3.2.5":
        return f"psa-2010-{percent}"
    year = {"table-3.5": "2020", "table-6.3": "2010"}[table]
    area, _, size = item.inputs["match"].partition(" by ")
    scheme = area.replace(" ", "") + ("-size" if size else "")
    return f"psa-{year}-{scheme}-{item.inputs['swap']}-{percent}"


SWAPS = [
    (deployment_of(item), 3_653_802 if "section" in item.id else item.inputs["largest_stratum"], item)
    for table in ("thesis/table-3.2", "thesis/section-3.2.5", "thesis/table-3.5", "swapping-paper/table-6.3")
    for item in chosen([table])[0]
    if "rate" in item.inputs
]
TABLE_3_3 = {
    "pl-household": ("PL 94-171, household tables", "table-3.3-pl-household"),
    "pl-person": ("PL 94-171, person tables", "table-3.3-pl-person"),
    "dhc-household": ("DHC, household tables", ""),
    "dhc-person": ("DHC, person tables", "table-3.3-dhc-person"),
    "total": ("total", "table-3.3-total"),
}
"""The part of the deployment that a row of the table is about, and the erratum of the deployment."""
FROM_ROUNDED_RHO = {"pl-household": ("0.07", "2.6091"), "pl-person": ("2.56", "17.9153")}
"""rho as the table prints it and the epsilon that it would have; the printed epsilon is that of the unrounded rho."""
TABLE_3_4 = {
    "topdown-2020-pl": "theorem-3.3.1/pl",
    "topdown-2020-pl-dhc": "table-3.4/topdown/rho",
    "safetab-p-2020": "table-3.4/safetab-p/rho",
    "safetab-h-2020": "table-3.4/safetab-h/rho",
    "phsafe-2020": "table-3.4/phsafe/rho",
    "das-2020-overall": "table-3.4/overall/rho",
}
OF_2020 = ("topdown-2020-pl-dhc", "safetab-p-2020", "safetab-h-2020", "phsafe-2020")


def rounds_to(value: float, printed: str) -> bool:
    """Whether a number printed to some decimals is this one, rounded to the nearest."""
    unit = Fraction(1, 10 ** len(printed.partition(".")[2]))
    return abs(Fraction(value) - Fraction(printed)) <= unit / 2 + Fraction(1, 10**9)


def spec(name: str) -> Specification:
    return deployment(name).specification


# -- the 2020 Census -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["table_3_4"]["rows"], ids=lambda row: row["deployment"])
def test_table_3_4_is_reproduced(row):
    found = spec(row["deployment"])
    assert found.budget.number == Fraction(published(f"thesis/{TABLE_3_4[row['deployment']]}"))
    assert found.input_premetric.unit == row["unit"]
    assert found.output_premetric.name == "normalised-renyi"
    assert len(found.multiverse.invariants) == row["invariants"]
    assert found.nearest == 1
    assert rounds_to(float(as_approximate(found, DELTA, "classical").budget.number), row["classical"])


def rows_of_table_3_3() -> list[dict[str, str]]:
    rows = []
    for key, (part, erratum) in TABLE_3_3.items():
        item = items()[f"thesis/table-3.3/epsilon/{key}"]
        assert bool(erratum) == (bool(item.erratum) or key in FROM_ROUNDED_RHO)
        rho, follows = FROM_ROUNDED_RHO[key] if key in FROM_ROUNDED_RHO else (item.inputs["rho"], item.further)
        rows.append({"part": part, "rho": rho, "epsilon": item.published, "follows": follows, "erratum": erratum})
    return rows


@pytest.mark.parametrize(
    ("row", "method"),
    [(row, "classical") for row in rows_of_table_3_3()] + [(row, "tight") for row in GOLDEN["registry"]["rows"]],
    ids=lambda value: value if isinstance(value, str) else value["part"],
)
def test_table_3_3_and_the_registry_are_reproduced_or_explained(row, method):
    known = deployment("topdown-2020-pl-dhc")
    parts = {part.what: part.budget for part in known.parts} | {"total": known.specification.budget.number}
    assert parts[row["part"]] == Fraction(row["rho"])
    (printed,) = [p for p in known.published if p.value == row["epsilon"] and p.conversion == method]
    assert (printed.of, printed.delta, printed.erratum) == (Fraction(row["rho"]), DELTA, row["erratum"])
    follows = zcdp_to_approximate(printed.of, printed.delta, method)
    assert rounds_to(follows, row["follows"])
    if not row["erratum"]:
        assert rounds_to(follows, row["epsilon"])
        return
    assert not rounds_to(follows, row["epsilon"])
    assert rounds_to(zcdp_to_approximate(printed.unrounded, printed.delta, method), row["epsilon"])
    (erratum,) = [entry for entry in known.errata if entry.id == row["erratum"]]
    assert (erratum.printed, erratum.correct) == (row["epsilon"], row["follows"])


def test_the_parts_add_up_exactly():
    for name in names():
        known = deployment(name)
        if known.parts:
            assert sum(part.budget for part in known.parts) == known.specification.budget.number


def test_the_dhc_alone_is_what_the_two_runs_differ_by():
    alone = sum(part.budget for part in deployment("topdown-2020-pl-dhc").parts if part.what.startswith("DHC"))
    assert alone == Fraction(published("thesis/appendix-b.5/dhc-alone"))
    assert spec("topdown-2020-pl-dhc").budget.number - alone == spec("topdown-2020-pl").budget.number
    assert rounds_to(zcdp_to_approximate(alone, DELTA, "classical"), GOLDEN["dhc_alone"]["classical"])


def test_budgets_in_the_normalised_renyi_metric_are_roots_of_rho():
    """The slides print rho = 2.63 and 15.29 where the metric's budget is the root; two copies add up in rho only."""
    for name, rho, root in (("topdown-2020-pl", "2.63", 1.621727), ("topdown-2020-pl-dhc", "15.29", 3.910243)):
        found = spec(name)
        assert found.budget.number == Fraction(rho)
        assert lipschitz(found.output_premetric, found.budget.number) == pytest.approx(root, abs=6e-7)
        assert lipschitz(found.output_premetric, found.budget.number) != pytest.approx(float(rho), rel=0.1)
    # What a budget is held against: two coins of one law are as far apart as the root of rho.
    p, q = [0.6, 0.4], [0.4, 0.6]
    coin = FiniteMechanism.of({"0": {"y": 0.6, "n": 0.4}, "1": {"y": 0.4, "n": 0.6}})
    loss = coin.loss(flavors.zcdp("person"), {"0": "0", "1": "1"})
    assert loss.lipschitz == pytest.approx(normalised_renyi(p, q)) == pytest.approx(math.sqrt(loss.rho))


def test_the_releases_of_2020_compose_to_rho_55_371_under_topdowns_invariants():
    overall = compose(*(spec(name) for name in OF_2020))
    assert (
        overall.specification.budget.number == Fraction(published("thesis/table-3.4/overall/rho")) == Fraction("55.371")
    )
    staying = replace(spec("topdown-2020-pl").input_premetric, stays_in=("household",))
    assert overall.specification.input_premetric == staying
    assert overall.specification.multiverse == spec("topdown-2020-pl").multiverse
    assert overall.specification == spec("das-2020-overall")
    assert set(overall.specification.covers) == set(spec("das-2020-overall").covers)
    assert [part.what for part in deployment("das-2020-overall").parts] == list(OF_2020)
    converted = as_approximate(overall.specification, DELTA, "classical")
    printed = items()["thesis/table-3.4/overall/epsilon"]
    assert rounds_to(float(converted.budget.number), printed.published)
    assert rounds_to(float(converted.budget.number), printed.further)
    assert "classical" in converted.budget.conversion


@pytest.mark.parametrize(
    "invariants",
    [(), (Invariant("housing unit", by=("block",)),), spec("topdown-2020-pl").multiverse.invariants],
    ids=["none", "housing units", "those of TopDown"],
)
def test_every_reading_of_safetabs_invariants_composes_to_the_same(invariants):
    safetab = [
        replace(spec(name), multiverse=replace(spec(name).multiverse, invariants=invariants))
        for name in ("safetab-p-2020", "safetab-h-2020")
    ]
    assert compose(spec("topdown-2020-pl-dhc"), *safetab, spec("phsafe-2020")).specification == spec("das-2020-overall")


def test_a_respondent_who_touches_two_records_has_four_times_the_rho():
    rho, epsilon_ = (items()[f"thesis/section-3.4.4/{name}"] for name in ("rho", "epsilon"))
    changed = per_respondent(spec("das-2020-overall"), rho.inputs["records"]).specification
    assert changed.budget.number == Fraction(rho.further)
    assert rounds_to(float(as_approximate(changed, DELTA, "classical").budget.number), epsilon_.published)


def test_whether_a_block_has_a_housing_unit_follows_from_how_many_it_has():
    (inequality,) = spec("phsafe-2020").multiverse.invariants
    assert inequality.at_least == 1
    assert any(invariant.implies(inequality) for invariant in spec("topdown-2020-pl").multiverse.invariants)


# -- swapping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "largest", "item"), SWAPS, ids=[name for name, _, _ in SWAPS])
def test_the_epsilon_of_a_swap_is_that_of_the_theorem_and_rounds_to_the_printed_one(name, largest, item):
    known = deployment(name)
    found, fact = known.specification, known.specification.fact
    assert fact["largest_stratum"] == largest
    assert float(found.budget.number) == epsilon(largest, Fraction(str(fact["rate"])))
    assert rounds_to(float(found.budget.number), item.published)
    (entry,) = known.published
    assert entry.value == item.published or Fraction(entry.value) == Fraction(item.published)
    assert (found.output_premetric.name, found.input_premetric.unit, found.nearest) == (
        "multiplicative",
        "household",
        2,
    )
    assert name.endswith(f"-p{float(Fraction(str(fact['rate']))) * 100:02.0f}")
    assert known.kind == "what-if"


def test_every_swap_in_the_data_has_its_published_number():
    assert {name for name in names() if name.startswith("psa-")} == {name for name, _, _ in SWAPS}


@pytest.mark.parametrize("name", [name for name, _, _ in SWAPS])
def test_the_invariants_of_a_swap_are_its_two_margins(name):
    found = spec(name)
    match, swap = (set(str(found.fact[key]).split(", ")) for key in ("match", "swap"))
    held, moved, *persons = found.multiverse.invariants
    assert match < set(held.by) and not swap & set(held.by)
    assert set(moved.by) == match | swap
    assert all(invariant.counts == "person" and invariant.by == held.by for invariant in persons)


def test_the_2010_range_is_kept_for_both_sizes_of_the_largest_stratum():
    for name, rate in (("psa-2010-p02", "0.02"), ("psa-2010-p04", "0.04")):
        item = items()[f"thesis/section-3.2.5/{rate}"]
        assert rounds_to(epsilon(item.inputs["largest_stratum"], Fraction(rate)), item.further)
        assert any(entry.id == "b-2010" for entry in deployment(name).errata)
    assert deployment("psa-2010") is deployment("psa-2010-p02")
    assert spec("psa-2010-p02").budget.number > spec("psa-2010-p04").budget.number


def test_a_guarantee_is_shown_rounded_up_where_the_table_rounds_to_the_nearest():
    known = deployment("psa-1940-ma-p50")
    (erratum,) = known.errata
    printed = published("thesis/table-3.2/0.50")
    assert (erratum.printed, erratum.correct) == (printed, display(known.specification.budget.number))


def test_the_range_of_section_4_3_is_that_of_2010_and_not_of_table_3_5():
    rows = [item.published for name, _, item in SWAPS if name.startswith("psa-2010-") and name.endswith("-p05")]
    smallest, largest = (published(f"thesis/section-4.3/{end}-epsilon") for end in ("smallest", "largest"))
    assert (min(rows, key=float), max(rows, key=float)) == (smallest, largest)
    (erratum,) = [e for e in deployment("psa-2020-county-tract-p05").errata if e.id == "section-4.3-range"]
    assert smallest in erratum.printed and largest in erratum.printed


# -- one against the other -----------------------------------------------------------------------------------


@pytest.mark.parametrize("swap", ["psa-2020-state-county-p50", "psa-2020-blockgroup-size-block-p05"])
def test_swapping_and_topdown_do_not_imply_each_other(swap):
    forth, back = spec(swap).implies(spec("topdown-2020-pl")), spec("topdown-2020-pl").implies(spec(swap))
    assert (forth.verdict, back.verdict) == ("no", "no")
    assert "households by" in forth.steps[-1].words
    # The swap fixes populations too, since household sizes are held; housing units and group quarters it does not.
    assert "housing units by block" in back.steps[-1].words


def test_under_equal_invariants_gaussian_noise_still_has_no_finite_epsilon():
    swap = spec("psa-2020-state-county-p05")
    answer = replace(spec("topdown-2020-pl"), multiverse=swap.multiverse).implies(swap)
    assert answer.verdict == "no"
    assert "Gaussian noise" in answer.steps[-1].words and answer.steps[-1].source == "section 3.5.2"


def test_a_swap_at_half_the_rate_is_weaker_and_at_the_same_invariants_comparable():
    often, seldom = spec("psa-1940-ma-p50"), spec("psa-1940-ma-p05")
    assert often.implies(seldom).verdict == "yes"
    assert seldom.implies(often).verdict == "no"


# -- the files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_every_deployment_stands_up(name):
    known = deployment(name)
    found = known.specification
    assert found.name == name and known.title and known.sources and known.products
    assert Specification.from_json(found.to_json()) == found
    assert not found.domain.restricted_by
    census = found.domain.name.startswith("Census Edited File") or name.startswith("psa-1940-")
    # Of the others nothing is known from which more could be deduced, nor where recording ends.
    assert (found.domain.free, bool(found.domain.starts)) == (census, census)
    assert found.fact["end_to_end"] is False
    assert all(entry.conversion and entry.source for entry in known.published)
    assert {entry.erratum for entry in known.published} - {""} <= {entry.id for entry in known.errata}
    assert len({entry.id for entry in known.errata}) == len(known.errata)
    assert known.title in str(known)


def test_names_and_aliases_are_unique():
    aliases = [alias for name in names() for alias in deployment(name).aliases]
    assert len({*names(), *aliases}) == len(names()) + len(aliases)


def test_an_unknown_name_is_refused_with_those_that_look_like_it():
    with pytest.raises(SpecificationError, match="Did you mean 'topdown-2020-pl'") as refusal:
        deployment("topdwn-2020-pl")
    assert refusal.value.kind == "unknown-deployment"
    with pytest.raises(SpecificationError, match="lists all"):
        deployment("zzz")
