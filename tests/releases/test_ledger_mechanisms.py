"""Releases of different mechanisms in one ledger compose by the rules there are, or are refused with the reason."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from ledger_tools import refused

import stirred
from stirred import errors
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.ledger.totals import together

ROWS = pl.DataFrame(
    {
        "size": [str(1 + i % 2) for i in range(120)],
        "county": ["abc"[i // 2 % 3] for i in range(120)],
        "tenure": [("own", "rent")[i // 5 % 2] for i in range(120)],
    }
)
SWAP = stirred.SwapPlan(
    match=["size"], swap=["county"], hold=["tenure"], rate=0.5, dataset="office", unit="household", chosen_from="public"
)


def topdown(unit: str = "household", zeros: bool = False) -> stirred.TopDownPlan:
    table = {
        "name": "households",
        "unit": unit,
        "attributes": [{"name": "size", "values": ["1", "2"]}, {"name": "tenure", "values": ["own", "rent"]}],
        "rho": "1/2",
        "level_shares": {"us": "1/2", "county": "1/2"},
        "queries": [{"by": ["size", "tenure"], "shares": "1"}],
        **({"zeros": [{"size": ["2"], "tenure": ["own"]}]} if zeros else {}),
    }
    return stirred.TopDownPlan(
        dataset="office", unit=unit, chosen_from="public",
        spine={"levels": ["county"], "absent": ["us"]}, tables=[table],
    )  # fmt: skip


PLACES = pl.DataFrame({"county": ["a", "b", "c"]})
DATA = {"swap": ROWS, "topdown": {"households": ROWS, "geography": PLACES}}


def release(kind: str, ledger: Ledger, out) -> stirred.spec.Specification:
    plan = SWAP if kind == "swap" else topdown()
    return stirred.release(plan, DATA[kind], out=out, ledger=ledger).specification


@pytest.mark.parametrize("order", [("swap", "topdown"), ("topdown", "swap")])
def test_a_swap_and_a_topdown_release_compose_under_the_invariants_of_both(order, tmp_path):
    ledger = Ledger.create(tmp_path / "office.ledger", "office")
    made = {kind: release(kind, ledger, tmp_path / kind) for kind in order}
    total = ledger.total().specification
    epsilon, rho = made["swap"].budget.number, made["topdown"].budget.number
    assert total.output_premetric == made["topdown"].output_premetric
    as_rho = float(epsilon) * math.tanh(float(epsilon) / 2)  # what epsilon gives
    assert total.budget.number == pytest.approx(float(rho) + as_rho)
    assert set(total.multiverse.invariants) == set(made["swap"].multiverse.invariants)
    assert str(ledger.standing()).startswith("There is no limit")
    assert [verdict.words for verdict in ledger.verify() if not verdict.holds] == []
    assert sum("union of their invariants" in str(step) for step in ledger.total().steps) == 1


def stated(kind: str) -> stirred.spec.Specification:
    """The guarantee of a release, known before it."""
    return stirred.check(SWAP if kind == "swap" else topdown(), DATA[kind]).specification


@pytest.mark.parametrize("order", [("swap", "topdown"), ("topdown", "swap")])
def test_a_limit_of_the_joint_kind_is_kept_and_then_refuses(order, tmp_path, command):
    both = together(stated("swap"), stated("topdown"))
    for kind in order:
        (tmp_path / f"{kind}.json").write_text(stated(kind).to_json())
    limits = [word for kind in order for word in ("--limit", tmp_path / f"{kind}.json")]
    budget = float(both.budget.number) * 3 / 2
    ended = command(
        "ledger", "init", tmp_path / "office.ledger", "--dataset", "office", *limits, "--budget", f"{budget}"
    )
    assert ended.code == 0, ended.err
    ledger = Ledger.open(tmp_path / "office.ledger")
    for kind in order:
        release(kind, ledger, tmp_path / kind)
    standing = ledger.standing()
    assert standing.within and float(standing.left) == pytest.approx(budget / 3, rel=1e-6)
    with refused("ledger-over-limit", "Plan a release that costs less"):
        release("swap", ledger, tmp_path / "third")
    assert len(ledger.entries()) == 2 and not (tmp_path / "third").exists()


@pytest.mark.parametrize(
    ("kind", "of", "reason"),
    [
        ("swap", "topdown", "not known to hold fixed: the number of household records by 'size' and 'tenure'"),
        ("topdown", "swap", "Gaussian noise, or with probability delta, has a finite D_NoR and an infinite D_Mult"),
    ],
)
def test_a_limit_of_the_other_kind_refuses_with_the_reason_and_nothing_is_released(kind, of, reason, tmp_path):
    known = stated(of)
    limit = replace(known.flavor.at(1000), domain=replace(known.domain, variables=None, starts="", words=""))
    ledger = Ledger.create(tmp_path / "office.ledger", "office", limit)
    release(of, ledger, tmp_path / "first")
    with refused("ledger-over-limit", reason) as refusal:
        release(kind, ledger, tmp_path / "second")
    kept = "is not known to stay within" if "not known" in reason else "does not stay within"
    assert kept in str(refusal.value)
    assert "Whatever it costs, no rule tells how it counts against this limit" in str(refusal.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "office.ledger"]
    assert len(ledger.entries()) == 1


def test_releases_about_other_sets_of_datasets_are_refused_with_what_differs(tmp_path):
    rows = ROWS.filter((pl.col("size") == "1") | (pl.col("tenure") == "rent"))
    ledger = Ledger.create(tmp_path / "office.ledger", "office")
    half_fixed = SWAP.model_copy(update={"most_unchangeable": Fraction(1, 2)})
    stirred.release(half_fixed, rows, out=tmp_path / "first", ledger=ledger)
    with refused("ledger-no-total", "In another: combinations of values of 'households' that cannot occur") as refusal:
        data = {"households": rows, "geography": PLACES}
        stirred.release(topdown(zeros=True), data, out=tmp_path / "second", ledger=ledger)
    assert "'office' and 'office'" not in str(refusal.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "office.ledger"]


@pytest.mark.parametrize("kind", ["swap", "topdown"])
def test_neither_mechanism_publishes_or_keeps_anything_while_its_spend_is_unknown(kind, tmp_path, monkeypatch):
    def unknown(self, *given, **named):
        raise errors.ledger_unknown(self.path, "0" * 32, "the connection was lost.")

    ledger = Ledger.create(tmp_path / "office.ledger", "office")
    monkeypatch.setattr(Ledger, "spend", unknown)
    with refused("ledger-unknown"):
        release(kind, ledger, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["office.ledger"]
