"""Records of the public registry: read, written, and back, against a schema and records of our own.

Where the registry's own files lie (a folder named by STIRRED_DATA, by default ../shared/data beside the repository),
its schema is compared with ours and its entries for the census are read as well.
"""

from __future__ import annotations

import copy
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from stirred.errors import SpecificationError
from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import Invariant, flavors
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names
from stirred.spec.known_deployments.registry import (
    FIELDS,
    REQUIRED,
    STATUSES,
    details,
    dump,
    from_registry,
    to_registry,
    validate,
)
from stirred.spec.specification import NOT_FOR_RELEASE

DATA = Path(os.environ.get("STIRRED_DATA", Path(__file__).parents[3] / "shared" / "data"))
PUBLIC = DATA / "deployments-registry"
OWN = Path(__file__).parent / "registry"
VISITS, KEYBOARD = OWN / "counts-of-visits.yaml", OWN / "keyboard.yaml"
CENSUS = (
    "redistricting_data",
    "demographic_and_housing",
    "detailed_demographic_and_housing_a",
    "detailed_demographic_and_housing_b",
    "supplemental_demographic_and_housing",
)
GIVEN = details(
    name="A file", curators=["An office"], use="Research", region="Nowhere", date="2026-01-31", type="Dataset"
)


def public(name: str) -> Path:
    """A file of the registry."""
    path = PUBLIC / name
    if not path.exists():
        pytest.skip("the registry's files are not here; set STIRRED_DATA to their folder")
    return path


def census(name: str) -> Path:
    return public(f"census_{name}.yaml")


def own_schema() -> dict[str, Any]:
    return dict(json.loads((OWN / "schema.json").read_text(encoding="utf-8")))


def public_schema() -> dict[str, Any]:
    return dict(yaml.safe_load(public("deployments-schema.yaml").read_text(encoding="utf-8")))


@pytest.fixture
def schema() -> dict[str, Any]:
    return own_schema()


def record(path: Path = VISITS) -> dict[str, Any]:
    return copy.deepcopy(from_registry(path).registry)


def changed(place: str, value: object) -> str:
    """The record of visits with one field replaced, or taken away (None)."""
    fields = record()
    *way, last = place.split(".")
    inner = fields
    for part in way:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return dump(fields)


def refused(text: str, kind: str) -> str:
    with pytest.raises(SpecificationError) as refusal:
        from_registry(text)
    assert refusal.value.kind == kind
    return str(refusal.value)


# -- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rho", "known"),
    [
        (CENSUS[0], "2.63", "topdown-2020-pl"),
        (CENSUS[1], "15.29", "topdown-2020-pl-dhc"),
        (CENSUS[2], "19.776", "safetab-p-2020"),
        (CENSUS[3], "17.79", "safetab-h-2020"),
        (CENSUS[4], "2.515", "phsafe-2020"),
    ],
)
def test_the_census_entries_have_the_budgets_of_table_3_4_and_their_own_words(name, rho, known):
    found = from_registry(census(name))
    ours = deployment(known)
    assert found.specification.budget.number == Fraction(rho) == ours.specification.budget.number
    assert found.specification.output_premetric == ours.specification.output_premetric
    assert found.title == ours.registry["deployment"]["basic"]["name"]
    assert (
        found.registry["deployment"]["basic"]["publication_date"]
        == (ours.registry["deployment"]["basic"]["publication_date"])
    )
    assert found.sources


def test_the_differences_between_the_registry_and_table_3_4_are_errata_with_both_values():
    units = {"safetab-h-2020": CENSUS[3], "phsafe-2020": CENSUS[4]}
    for known, name in units.items():
        said = from_registry(census(name)).registry["deployment"]["privacy_loss"]["privacy_unit"]
        (erratum,) = [e for e in deployment(known).errata if e.id.startswith("registry-unit")]
        assert (erratum.printed, erratum.correct) == (said, deployment(known).specification.input_premetric.unit)
    assert from_registry(census(CENSUS[4])).specification.multiverse.invariants == ()
    assert any(e.printed == "N/A" for e in deployment("phsafe-2020").errata)
    two = from_registry(census(CENSUS[0]))
    assert [finding.id for finding in two.specification.findings] == ["registry-unit-unclear"]
    text = two.registry["deployment"]["privacy_loss"]["privacy_parameters_details"]
    for printed in deployment("topdown-2020-pl").published:
        assert (printed.value in text) == (printed.conversion == "tight")


def test_a_record_gives_a_specification_that_claims_no_more_than_it_says():
    found = from_registry(VISITS)
    specification = found.specification
    assert specification.budget.number == Fraction(1, 8)
    assert specification.output_premetric.name == "normalised-renyi"
    assert specification.input_premetric.unit == "person" and specification.input_premetric.bounded
    assert not specification.input_premetric.sharpened
    assert specification.multiverse.invariants == (
        Invariant(name="The number of visits of each clinic"),
        Invariant(name="Whether a clinic was open, for the kinds: day clinics, night clinics"),
    )
    assert specification.domain.name == "All lists of visits of one year."
    assert specification.nearest is None and not specification.findings
    assert found.registry["deployment"]["basic"]["publication_date"] == "2024-02-29"


def test_not_applicable_is_no_invariant_and_a_power_of_ten_is_a_delta():
    specification = from_registry(KEYBOARD).specification
    assert specification.multiverse.invariants == ()
    assert specification.output_premetric.at == Fraction(1, 10**10)
    assert not specification.input_premetric.bounded
    assert [finding.id for finding in specification.findings] == ["registry-domain-unstated"]


@pytest.mark.parametrize(
    ("place", "value", "finding"),
    [
        ("deployment.privacy_loss.privacy_unit", "Person-level; visit-level", "registry-unit-unclear"),
        ("deployment.privacy_loss.privacy_unit", None, "registry-unit-unstated"),
        ("deployment.privacy_loss.privacy_unit_details", None, "registry-neighbours-unstated"),
        ("deployment.dp_variant.unprotected_quantities", None, "registry-invariants-unstated"),
        ("deployment.dp_variant.data_domain", None, "registry-domain-unstated"),
        ("deployment.privacy_loss.privacy_parameters", {"epsilon": 1, "delta": "1e-6"}, "registry-converted"),
    ],
)
def test_what_a_record_leaves_open_is_a_finding(place, value, finding):
    specification = from_registry(changed(place, value)).specification
    assert [entry.id for entry in specification.findings] == [finding]
    if "unit" in finding or "neighbours" in finding:
        assert specification.input_premetric.kind == "relation"


@pytest.mark.parametrize(
    ("variant", "parameters", "words", "name", "budget"),
    [
        ("Pure DP", {"epsilon": 0.1}, "", "multiplicative", "0.1"),
        ("Approximate DP", {"epsilon": 1, "delta": 1e-6}, "", "approximate", "1"),
        ("Renyi DP", {"epsilon": 2.5}, r"Here \alpha = 16.", "renyi", "2.5"),
        ("Renyi DP", {"rho": 0.5}, "", "normalised-renyi", "0.5"),
    ],
)
def test_each_variant_has_its_output_premetric(variant, parameters, words, name, budget):
    fields = record()
    fields["deployment"]["dp_variant"]["variant_name"] = variant
    fields["deployment"]["privacy_loss"] |= {"privacy_parameters": parameters, "privacy_parameters_details": words}
    specification = from_registry(dump(fields)).specification
    assert (specification.output_premetric.name, specification.budget.number) == (name, Fraction(budget))


# -- writing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [VISITS, KEYBOARD, *CENSUS], ids=str)
def test_a_record_that_is_read_and_written_keeps_every_field(path):
    path = path if isinstance(path, Path) else census(path)
    found = from_registry(path)
    before = yaml.safe_load(path.read_text(encoding="utf-8"))
    before["deployment"]["basic"]["publication_date"] = str(before["deployment"]["basic"]["publication_date"])
    assert yaml.safe_load(to_registry(found.specification, found.registry)) == before


@pytest.mark.parametrize("path", [VISITS, KEYBOARD, *CENSUS], ids=str)
def test_a_record_that_is_read_and_written_is_valid_before_and_after(path, schema):
    path = path if isinstance(path, Path) else census(path)
    found = from_registry(path)
    jsonschema.validate(found.registry, schema)
    jsonschema.validate(yaml.safe_load(to_registry(found.specification, found.registry)), schema)


@pytest.mark.parametrize("name", [name for name in names() if deployment(name).kind == "deployment"])
def test_known_deployments_are_written_as_valid_records(name, schema):
    written = yaml.safe_load(to_registry(deployment(name).specification, deployment(name).registry))
    jsonschema.validate(written, schema)
    assert written["status"] == "Draft" and written["tier"] == 2


SOME = [
    flavors.pure("household").at("0.1"),
    flavors.approximate("1e-6", bounded=False).at(1),
    flavors.zcdp("person").at("1/3"),
    flavors.renyi(2).at("0.5"),
    flavors.trade_off().at(GaussianCurve(1.0)),
    flavors.pure().at("infinity"),
    flavors.given_invariants(flavors.pure("person"), [Invariant("person", by=("state",))], nearest=2).at(3),
]


@pytest.mark.parametrize("specification", SOME, ids=str)
def test_any_specification_is_written_as_a_valid_record(specification, schema):
    given = copy.deepcopy(GIVEN)
    given["deployment"]["basic"]["description"] = "Something."
    text = to_registry(specification, given)
    jsonschema.validate(yaml.safe_load(text), schema)


@pytest.mark.parametrize("specification", [s for s in SOME if not s.budget.is_curve and s.budget.number < 100], ids=str)
def test_what_is_written_comes_back_at_most_rounded_up(specification):
    given = copy.deepcopy(GIVEN)
    given["deployment"]["basic"]["description"] = "Something."
    back = from_registry(to_registry(specification, given)).specification
    assert back.output_premetric == specification.output_premetric
    assert 0 <= back.budget.number - specification.budget.number < Fraction(1, 10**15)
    assert back.nearest == specification.nearest
    assert back.input_premetric == specification.input_premetric
    assert len(back.multiverse.invariants) == len(specification.multiverse.invariants)


def test_a_swap_says_what_is_unprotected_and_how_far_the_nearest_counterfactual_is():
    swap = deployment("psa-2020-state-county-p05").specification
    fields = yaml.safe_load(to_registry(swap, GIVEN))["deployment"]
    assert fields["dp_variant"]["variant_name"] == "Pure DP"
    assert fields["dp_variant"]["unprotected_quantities"].count("\n- ") == 2
    assert "2 apart, where epsilon is 38.73" in fields["privacy_loss"]["privacy_unit_details"]
    assert fields["privacy_loss"]["privacy_unit"] == "Household-level"
    assert fields["privacy_loss"]["privacy_parameters"] == {"epsilon": float(swap.budget.number)}
    assert fields["deployment_model"] == {
        "model_name": "Central",
        "release_type": "One release",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def test_a_record_asks_for_what_no_specification_knows():
    with pytest.raises(SpecificationError, match="--curator, --use, --region, --date") as refusal:
        to_registry(flavors.pure().at(1), details(name="A file", type="Dataset", description="Rows."))
    assert refusal.value.kind == "registry-details-missing"


def test_a_record_of_another_guarantee_is_refused():
    with pytest.raises(SpecificationError, match=r"D_NoR at 0.125, the specification D_NoR at 2.00") as refusal:
        to_registry(flavors.zcdp().at(2), record())
    assert refusal.value.kind == "registry-contradicts"


def test_what_came_from_a_seeded_source_is_not_for_the_registry():
    with pytest.raises(SpecificationError, match="seeded") as refusal:
        to_registry(flavors.pure().at(1, marks=(NOT_FOR_RELEASE,)), GIVEN)
    assert refusal.value.kind == "not-for-registry"


# -- the form ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [own_schema, public_schema])
def test_our_table_of_fields_is_the_schemas(read):
    schema = read()
    assert schema["properties"]["status"]["enum"] == list(STATUSES)
    deployment_fields = schema["properties"]["deployment"]["properties"]
    assert set(deployment_fields) == set(FIELDS)
    for section, fields in FIELDS.items():
        theirs = deployment_fields[section]
        assert set(theirs["properties"]) == set(fields)
        assert set(theirs.get("required", ())) == set(REQUIRED.get(section, ()))
        for name, kind in fields.items():
            if isinstance(kind, tuple):
                assert theirs["properties"][name]["enum"] == list(kind)


@pytest.mark.parametrize(
    "text",
    ["a: [b", "- one\n- two\n", "\n", "!!python/object/apply:os.getcwd []\n", "a: &x [*x]\n" * 2, "\x00\n"],
)
def test_what_is_no_plain_yaml_with_fields_is_refused(text):
    with pytest.raises(SpecificationError) as refusal:
        from_registry(text + "\n")
    assert refusal.value.kind in ("not-a-registry-record", "registry-field")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "no readable file" in refused(str(tmp_path / "none.yaml"), "not-a-registry-record")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("url_slug", None, "'url_slug' of the registry record is missing"),
        ("deployment", None, "'deployment' of the registry record is missing"),
        ("status", "Perfect", "is one of Converted, Draft"),
        ("tier", 4, "is one of 1, 2, 3"),
        ("tier", True, "is one of 1, 2, 3"),
        ("color", "blue", "has no field 'color'"),
        ("deployment", "words", "holds fields"),
        ("deployment.basic", None, "'deployment.basic' of the registry record is missing"),
        ("deployment.basic.name", None, "'basic.name' of the registry record is missing"),
        ("deployment.basic.color", "blue", "'basic' of the registry record has no field 'color'"),
        ("deployment.basic.data_curators", [], "is a list of one text or more"),
        ("deployment.basic.intended_use", 3, "is text"),
        ("deployment.basic.data_product_type", "Painting", "is one of Summary statistics"),
        ("deployment.basic.publication_date", "last May", "is a date such as 2021-08-01"),
        ("deployment.dp_variant.variant_name", "Very DP", "is one of Pure DP"),
        ("deployment.privacy_loss", ["rho"], "'privacy_loss' of the registry record holds fields"),
        ("deployment.privacy_loss.privacy_parameters.rho", "large", "is a number from 0 to 1e+100"),
        ("deployment.privacy_loss.privacy_parameters.rho", -1, "is a number from 0 to 1e+100"),
        ("deployment.privacy_loss.privacy_parameters.alpha", 2, "has no field 'alpha'"),
        ("deployment.administrative.registry_authors", None, "'administrative.registry_authors' of the registry"),
    ],
)
def test_a_field_that_is_wrong_is_named(place, value, words):
    assert words in refused(changed(place, value), "registry-field")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("deployment.dp_variant.variant_name", "Custom", "its variant is 'Custom'"),
        ("deployment.dp_variant", None, "its variant is not given"),
        ("deployment.privacy_loss", None, "with the parameters none is no budget"),
        ("deployment.privacy_loss.privacy_parameters", {"epsilon": 1}, "with the parameters 'epsilon' is no budget"),
        ("deployment.dp_variant.variant_name", "Pure DP", "'Pure DP' with the parameters 'rho' is no budget"),
    ],
)
def test_a_record_without_a_budget_gives_no_specification(place, value, words):
    assert words in refused(changed(place, value), "registry-without-guarantee")


def test_a_delta_in_words_is_refused():
    text = changed("deployment.privacy_loss.privacy_parameters", {"epsilon": 1, "delta": "tiny"})
    assert "delta cannot be 'tiny'" in refused(text, "bad-number")


def test_our_own_records_are_valid_under_the_schema(schema):
    for path in (VISITS, KEYBOARD):
        fields = record(path)
        validate(fields)
        jsonschema.validate(fields, schema)
