"""What a person may type where a specification is wanted."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.errors import SpecificationError, StirredError
from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import flavors
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.loading import load

VISITS = Path(__file__).parent / "registry" / "counts-of-visits.yaml"
NOT_NUMBERS = ["rho=two", "epsilon=-1", "epsilon=1,delta=x", "epsilon=1,delta=2", "mu=x", "mu=infinity", "mu=1e400"]
MINE = flavors.pure("household").at("0.3")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A release folder, as far as its specification goes."""
    made = tmp_path / "survey-2026"
    made.mkdir()
    (made / "specification.json").write_text(MINE.to_json(), encoding="utf-8")
    certificate = {"stirred_certificate": 1, "specification": json.loads(MINE.to_json())}
    (made / "certificate.json").write_text(json.dumps(certificate), encoding="utf-8")
    return made


def test_a_deployment_is_known_by_name_and_alias():
    assert load("phsafe-2020") is deployment("phsafe-2020").specification
    assert load(" psa-2010 ").name == "psa-2010-p02"


def test_a_release_is_known_by_its_folder_its_specification_or_its_certificate(folder):
    assert load(folder) == load(str(folder)) == load(folder / "specification.json") == MINE
    assert load(folder / "certificate.json") == MINE
    assert load(folder).name == load(folder / "specification.json").name == "survey-2026"


def test_a_folder_with_the_name_of_a_deployment_is_reached_by_its_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename("phsafe-2020")
    assert load("phsafe-2020") == deployment("phsafe-2020").specification
    assert load("./phsafe-2020") == load(Path("phsafe-2020")) == MINE


def test_a_registry_record_is_read():
    assert load(VISITS).budget.number == Fraction(1, 8)


@pytest.mark.parametrize(
    ("text", "flavor", "budget"),
    [
        ("rho=2.63", flavors.zcdp("person"), "2.63"),
        ("epsilon=1", flavors.pure("person"), 1),
        ("epsilon = 1/3", flavors.pure("person"), "1/3"),
        ("epsilon=1,delta=1e-6", flavors.approximate("1e-6", "person"), 1),
        ("delta=1e-6, epsilon=1", flavors.approximate("1e-6", "person"), 1),
        ("epsilon=1,alpha=2", flavors.renyi(2, "person"), 1),
        ("mu=1", flavors.trade_off("person"), GaussianCurve(1.0)),
        ("rho=1,unit=household", flavors.zcdp("household"), 1),
        ("rho=1,unit=household,unbounded", flavors.zcdp("household", bounded=False), 1),
        ("unbounded,ordered,epsilon=2", flavors.pure("person", bounded=False, ordered=True), 2),
        ("epsilon=2,bounded,unordered", flavors.pure("person"), 2),
        ("epsilon=infinity", flavors.pure("person"), "infinity"),
    ],
)
def test_blocks_can_be_typed(text, flavor, budget):
    assert load(text) == flavor.at(budget)
    assert load(text).name == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rho=1,epsilon=2", "no flavor has 'epsilon' and 'rho' for its numbers"),
        ("delta=1e-6", "no flavor has 'delta'"),
        ("unit=person", "no flavor has no budget"),
        ("rho=1,rho=2", "'rho' is said twice"),
        ("rho=1,bounded,unbounded", "against another word"),
        ("rho=1,purple", "'purple' is none of its parts"),
        ("sigma=1", "'sigma=1' is none of its parts"),
        ("rho=", "'rho=' is none of its parts"),
        ("epsilon <= 100", "it has <= where = stands; a budget is an upper bound already"),
        ("epsilon ≤ 100", "it has ≤ where = stands"),
        ("rho=1,", "'' is none of its parts"),
    ],
)
def test_blocks_that_make_no_flavor_are_refused(text, words):
    with pytest.raises(SpecificationError) as refusal:
        load(text)
    assert refusal.value.kind == "bad-shorthand"
    assert words in str(refusal.value) and "epsilon=E,delta=D" in str(refusal.value)


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_numbers_that_are_none_are_refused(text):
    with pytest.raises(StirredError):
        load(text)


@pytest.mark.parametrize("text", ["", "purple", "nowhere/specification.json", "x" * 5000, "a\0b"])
def test_what_names_nothing_is_refused_with_what_is_accepted(text):
    with pytest.raises(SpecificationError, match="Accepted are") as refusal:
        load(text)
    assert refusal.value.kind == "nothing-to-load"


def test_a_name_that_is_nearly_one_is_answered_with_it():
    with pytest.raises(SpecificationError, match="Did you mean 'das-2020-overall'"):
        load("das-2020-overal")


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b'{"a": 1}'])
def test_a_file_that_is_no_specification_is_refused(content, tmp_path):
    (tmp_path / "specification.json").write_bytes(content)
    for path in (tmp_path, tmp_path / "specification.json"):
        with pytest.raises(SpecificationError) as refusal:
            load(path)
        assert refusal.value.kind == "not-a-specification"


def test_a_folder_without_a_specification_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match="there is no readable"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("das-2020", "das-2020-overall"),
        ("census-2020", "das-2020-overall"),
        ("DAS_2020 Overall", "das-2020-overall"),
        ("psa-2010", "psa-2010-p02"),
        ("PSA-2010-P04", "psa-2010-p04"),
        ("safetab-p", "safetab-p-2020"),
    ],
)
def test_a_deployment_is_found_by_what_people_type(text, name):
    assert load(text).name == deployment(text).name == name


def test_the_beginning_of_several_names_is_refused_with_all_of_them():
    with pytest.raises(SpecificationError, match="is the beginning of 12 names") as refusal:
        load("psa-2020")
    assert refusal.value.kind == "several-deployments"
    assert str(refusal.value).count("'psa-2020-") == 12


def test_a_folder_comes_before_a_name_that_is_not_exact(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename("das")
    assert load("das") == MINE


@pytest.mark.parametrize(("text", "nearest"), [("topdwn-2020-pl", "topdown-2020-pl"), ("phsafe2020", "phsafe-2020")])
def test_a_misspelt_name_is_answered_with_the_nearest(text, nearest):
    with pytest.raises(SpecificationError, match=f"Did you mean '{nearest}'"):
        load(text)


@pytest.mark.parametrize("text", ["2,63", "rho=2,63", "rho = 2,63, unit=household"])
def test_a_decimal_comma_is_refused_with_the_point(text):
    with pytest.raises(SpecificationError, match=r"write 2\.63") as refusal:
        load(text)
    assert refusal.value.kind == "decimal-comma"


def test_a_number_alone_is_refused_with_what_it_may_mean():
    with pytest.raises(SpecificationError, match=r"'rho=2\.63', 'epsilon=2\.63'"):
        load("2.63")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("eps=1", "epsilon=1"),
        ("ε=1, δ=1e-6", "epsilon=1,delta=1e-6"),
        ("Rho=2.63", "rho=2.63"),
        ("epsilon=1 delta=1e-6 unbounded", "epsilon=1,delta=1e-6,unbounded"),
        ("rho=1; unit=housing unit; Ordered", "rho=1,unit=housing unit,ordered"),
        ("epsilon=Infinity", "epsilon=infinity"),
    ],
)
def test_blocks_are_read_as_people_write_them(text, same):
    assert load(text) == load(same)


def test_a_part_that_is_nearly_one_is_answered_with_it():
    with pytest.raises(SpecificationError, match="is 'epsilon' meant"):
        load("epsilom=1")


@pytest.mark.parametrize("given", [None, 2.63, ["rho=1"]])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(StirredError, match="A name or path of a specification cannot be"):
        load(given)
