"""Specifications survive JSON, and what is no specification is refused by what is wrong with it."""

import json
from pathlib import Path

import jsonschema
import pytest
from test_blocks import NAMED

from stirred.errors import StirredError
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, approximate_power
from stirred.spec import Budget, Domain, Finding, InputPremetric, Invariant, Multiverse, OutputPremetric, flavors
from stirred.spec.specification import Flavor, Specification, schema

DOCS = Path(__file__).parents[2] / "docs"
PROFILE = Flavor(Domain("x"), Multiverse(), InputPremetric.neighbours(), OutputPremetric("approximate-profile"))
FINITE = Flavor(
    Domain("toy", datasets=("a", "b", "c")),
    Multiverse((), (("a", "b"), ("b", "c"))),
    InputPremetric.table({("a", "b"): 1, ("b", "c"): "1/3"}),
    OutputPremetric("multiplicative", partition=(("t", "u"), ("v",))),
)
EXAMPLES = [
    *(flavor.at(GaussianCurve(1.5) if name == "trade-off" else "2.63", name=name) for name, flavor in NAMED.items()),
    flavors.trade_off().at(approximate_power(1.0, 1e-3)),
    PROFILE.at(EpsilonProfile(((1e-9, 2.0), (1e-6, 1.0)))),
    FINITE.at(Budget("1/3", by_universe=("1/3", "0.1"))),
    flavors.pure().at("infinity", marks=("not for release",), nearest="infinity"),
    flavors.zcdp(within=(("household", 99_999),)).at(
        "2.63",
        covers=("PL 94-171",),
        facts=(("mechanism", "topdown"), ("records", 331_449_281), ("imputed", True)),
        findings=(Finding("late-start", "It starts late.", "why", "section 2.4.2"),),
        nearest=1,
    ),
]


@pytest.mark.parametrize("made", EXAMPLES, ids=lambda made: made.name or "unnamed")
def test_a_specification_comes_back_from_its_json_in_every_field(made):
    back = Specification.from_json(made.to_json())
    assert back == made
    assert back.to_json() == made.to_json()
    fields = ("nearest", "name", "covers", "facts", "findings", "marks")
    assert [getattr(back, field) for field in fields] == [getattr(made, field) for field in fields]
    assert hash(back) == hash(made)


@pytest.mark.parametrize("made", EXAMPLES, ids=lambda made: made.name or "unnamed")
def test_every_example_is_valid_under_the_published_schema(made):
    jsonschema.Draft202012Validator(schema()).validate(json.loads(made.to_json()))


def test_the_published_schema_is_the_one_in_the_code():
    assert json.loads((DOCS / "specification.schema.json").read_text(encoding="utf-8")) == schema()


def changed(**fields):
    text = json.loads(flavors.pure().at(1).to_json())
    for name, value in fields.items():
        if value is None:
            text.pop(name)
        else:
            text[name] = value
    return json.dumps(text)


BAD = {
    "": "not JSON",
    "{": "not JSON",
    "[]": "'stirred_specification'",
    "null": "'stirred_specification'",
    '{"five": "blocks"}': "'stirred_specification'",
    "[" * 100_000: "nested deeper than 64 levels",
    '{"stirred_specification": 2, "stirred_specification": 2}': "a field twice",
    '{"stirred_specification": 1e999}': "a number that is too large",
    '{"stirred_specification": %s}' % ("9" * 100_000): "a number of more than 1,000 digits",
    changed(multiverse={"invariants": [{"name": f"{n}"} for n in range(20_000)]}): "'invariants' has 20,000 entries",
    changed(domain={"name": "x", "datasets": [f"{n}" for n in range(201)]}): "'datasets' has 201 entries",
    changed(name="x" * 20_001): "'name' has a text of more than 20,000 characters",
    changed(multiverse=None): "multiverse",
    changed(sixth_block={}): "sixth_block",
    changed(domain={"name": "x", "colour": "blue"}): "domain.colour",
    changed(domain="x"): "domain",
    changed(input_premetric={"kind": "guess"}): "input_premetric.kind",
    changed(budget={"value": "1", "surprise": 1}): "budget.surprise",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{number}" for number in range(len(BAD))])
def test_what_is_no_specification_is_refused_by_name(text):
    with pytest.raises(StirredError) as refusal:
        Specification.from_json(text)
    assert refusal.value.kind == "not-a-specification"
    assert BAD[text] in str(refusal.value)


@pytest.mark.parametrize("version", [1, 3, "2", True, {}, 2.5])
def test_another_version_is_refused(version):
    with pytest.raises(StirredError) as refusal:
        Specification.from_json(changed(stirred_specification=version))
    assert refusal.value.kind == "specification-version"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (changed(budget={"value": "-1"}), "bad-number"),
        (changed(budget={"value": "NaN"}), "bad-number"),
        (changed(budget={"value": {"curve": 1}}), "bad-block"),
        (changed(output_premetric={"name": "wasserstein"}), "unknown-output-premetric"),
        (changed(multiverse={"universes": [["a"]]}), "strange-datasets"),
    ],
)
def test_blocks_that_mean_nothing_are_refused_in_files_as_in_python(text, kind):
    with pytest.raises(StirredError) as refusal:
        Specification.from_json(text)
    assert refusal.value.kind == kind


def test_a_structured_invariant_keeps_its_columns():
    kept = Invariant("group quarters", by=("type", "block"), where=(("occupied", "yes"),), words="as it is said")
    made = flavors.pure(invariants=[kept]).at(1)
    (back,) = Specification.from_json(made.to_json()).multiverse.invariants
    assert back == kept
    assert str(back) == "as it is said"
