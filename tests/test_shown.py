"""What a notebook shows of each object that people meet: brief, without addresses, and no cell of confidential data."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from stirred import limits, loss, semantics, spec, swap
from stirred.estimates import Estimates
from stirred.lab.definitions.beliefs import Beliefs
from stirred.lab.definitions.composition_filters import ZcdpFilter
from stirred.lab.definitions.conversion_table import CONVERSIONS
from stirred.lab.definitions.two_laws import best_test
from stirred.lab.limits.chapter_figures import FIGURES, chapter_figure
from stirred.lab.limits.distances_of_densities import density_distances
from stirred.releases.ledger.ledger import Ledger
from stirred.spec import flavors
from stirred.spec.known_deployments.allocations import allocation
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.loading import load
from stirred.spec.order.finite_mechanisms import randomised_response
from stirred.swap.data.dataset import load as load_dataset

MOST_LINES, WIDTH = 20, 120
SECRET = "zqx"
"""A value that every cell of the confidential data contains."""


def swapped():
    rows = 60
    data = pl.DataFrame(
        {
            "size": [f"{SECRET}{k % 3}" for k in range(rows)],
            "county": [f"{SECRET}{k % 7}" for k in range(rows)],
            "tenure": [f"{SECRET}{k % 2}" for k in range(rows)],
        }
    )
    return swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05), data


def confidential():
    plan, data = swapped()
    check = swap.check(plan, data, tables=[["county", "tenure"]], rates=[0.05])
    dataset = load_dataset(plan, data)
    table = dataset.table
    return [
        plan, check, check.strata, check.margins, check.margins.held, check.tables, check.uniques, check.movement,
        check.what_if, check.forecast, dataset, table, table["county"], dataset.strata, dataset.input,
    ]  # fmt: skip


def estimates():
    values = np.arange(200.0).reshape(100, 2)
    places = tuple(f"town <{k}>" for k in range(100))
    labels = (("f",), ("m",))
    return Estimates("persons", ("sex",), {}, "town", places, labels, values, values + 1, values, np.zeros_like(values))


def open_objects():
    rho, pl94, overall = load("rho=1"), allocation("pl94-2020"), load("das-2020")
    compared = spec.compare(overall, rho, load("epsilon=1"))
    explained = semantics.explain(load("topdown-2020-pl"), concerns=["cenrace"])
    noise = loss.discrete_gaussian(4)
    response = randomised_response("1/4", respondents=8)
    records = dict.fromkeys([(a, b, c) for a in "01" for b in "01" for c in "01"], 0.125)
    small = randomised_response("1/4", respondents=3)
    return [
        overall, overall.flavor, flavors.pure(), overall.domain, overall.multiverse, overall.budget,
        deployment("psa-2010"), compared, compared.verdicts, compared.rows, rho.implies(load("rho=2")),
        spec.compose(rho, rho), spec.lint(rho), pl94, pl94.parts, response, load("mu=1"),
        explained, explained.setting, explained.statements[:3], explained.pictures()[0], explained.pictures()[-1],
        semantics.exposure(pl94, "cenrace", rounded=True), semantics.smallest_change(overall),
        Beliefs(records, small, target=0), best_test([0.5, 0.5], [0.2, 0.8], 0.1),
        noise, loss.laplace(1), loss.compose([(noise, 100)]), loss.pure_power(1), loss.ZcdpCurve(1),
        loss.PowerCurve(tuple((k / 300, (k / 300) ** 0.5) for k in range(301))), ZcdpFilter(1),
        loss.EpsilonProfile(((1e-10, 18.2), (1e-6, 13.1))), CONVERSIONS[0],
        limits.standard_limits(1, 1000), limits.power_bounds(np.linspace(0, 1, 1000), 1.0),
        chapter_figure(FIGURES[0]), limits.Density.normal(0, 1),
        density_distances(limits.Density.normal(0, 1), limits.Density.normal(1, 1)),
        limits.log_ratio_range([0.5, 0.5], [0.2, 0.8]),
        estimates(),
    ]  # fmt: skip


class Balanced(HTMLParser):
    """Follows the tags of a text, and complains where one is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "img", "meta", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


def well_formed(html: str) -> bool:
    reader = Balanced()
    reader.feed(html)
    reader.close()
    return not reader.open and "<table" in html


def lines_of(shown: str) -> int:
    return sum(1 + len(line) // WIDTH for line in shown.splitlines())


OPEN, CONFIDENTIAL = open_objects(), confidential()


@pytest.mark.parametrize("shown", [*OPEN, *CONFIDENTIAL], ids=lambda shown: type(shown).__name__)
def test_a_repr_is_brief_and_has_no_address(shown):
    assert " at 0x" not in repr(shown)
    assert lines_of(repr(shown)) <= MOST_LINES
    if hasattr(shown, "_repr_html_"):
        assert well_formed(shown._repr_html_())


@pytest.mark.parametrize("shown", CONFIDENTIAL, ids=lambda shown: type(shown).__name__)
def test_no_repr_shows_a_cell_of_confidential_data(shown):
    assert SECRET not in repr(shown)


def test_a_check_is_summed_up_and_printed_in_full():
    check = CONFIDENTIAL[1]
    assert repr(check).startswith("<SwapCheck, confidential: 60 records, rate 1/20, epsilon ")
    assert len(repr(check).splitlines()) == 1 and len(str(check).splitlines()) > 10


def test_a_ledger_and_its_standing_are_brief(tmp_path):
    limit = flavors.zcdp("person", domain=spec.Domain("survey", record="person", free=True)).at(1)
    ledger = Ledger.create(tmp_path / "survey.ledger", "survey", limit)
    ledger.spend(limit.flavor.at("0.5"), "tables")
    for shown in (ledger, ledger.standing(), ledger.entries()):
        assert " at 0x" not in repr(shown) and lines_of(repr(shown)) <= MOST_LINES


def test_html_escapes_what_it_shows():
    html = estimates()._repr_html_()
    assert "town &lt;0&gt;" in html and "<0>" not in html and "200 rows in all" in html
