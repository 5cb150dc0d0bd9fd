"""``stirred registry``: what it prints, and what it asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stirred.spec.known_deployments.registry import from_registry
from stirred.swap.drawing import release
from stirred.swap.plan.fields import SwapPlan

VISITS = Path(__file__).parents[1] / "spec" / "registry" / "counts-of-visits.yaml"
GIVEN = (
    "--name",
    "Homes",
    "--curator",
    "An office",
    "--use",
    "Research",
    "--region",
    "Nowhere",
    "--date",
    "2026-01-31",
    "--author",
    "A. Writer",
)


@pytest.fixture
def folder(tmp_path) -> Path:
    rows = [f"{size},{county},{tenure}" for size in (1, 2) for county in "xyz" for tenure in "or"]
    (tmp_path / "homes.csv").write_text("size,county,tenure\n" + "\n".join(rows * 5) + "\n", encoding="utf-8")
    plan = SwapPlan(
        unit="household", match=["size"], swap=["county"], hold=["tenure"], rate="0.05", chosen_from="public"
    )
    release(plan, tmp_path / "homes.csv", out=tmp_path / "released")
    return tmp_path / "released"


def test_a_release_is_exported_with_all_that_its_folder_knows(folder, command):
    ended = command("registry", "export", folder, *GIVEN)
    assert ended.code == 0
    fields = yaml.safe_load(ended.out)
    assert fields["url_slug"] == "homes-an-office-2026" and fields["status"] == "Draft"
    deployment = fields["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["basic"]["data_product_type"] == "Dataset"
    assert "size" in deployment["dp_variant"]["unprotected_quantities"]
    assert "randomness: the operating system's generator" in deployment["implementation"]["mechanisms"]
    assert "public" in deployment["implementation"]["preprocessing_and_hyperparameter_tuning"]
    back = from_registry(ended.out).specification
    stated = json.loads((folder / "specification.json").read_text(encoding="utf-8"))
    assert float(back.budget.number) == float(stated["budget"]["value"])
    assert back.nearest == 2 and back.input_premetric.sharpened


def test_what_the_folder_does_not_know_is_asked_for(folder, command):
    ended = command("registry", "export", folder, *GIVEN[:4])
    assert ended.code == 2 and ended.out == ""
    assert "--use, --region, --date, --author" in ended.err


def test_nobody_is_named_as_author_who_was_not_given_as_one(folder, command):
    ended = command("registry", "export", folder, *GIVEN[:-2])  # the office publishes; it did not write the record
    assert ended.code == 2 and ended.out == ""
    assert "needs 'author'" in ended.err and "An office" not in ended.err
    record = yaml.safe_load(command("registry", "export", folder, *GIVEN).out)
    assert record["deployment"]["administrative"]["registry_authors"] == ["A. Writer"]


def test_a_deployment_is_exported_by_its_name(command):
    ended = command("registry", "export", "das-2020-overall", "--author", "A. Writer")
    deployment = yaml.safe_load(ended.out)["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"rho": 55.371}
    assert deployment["deployment_model"]["release_type"] == "Many releases"
    assert deployment["administrative"]["registry_authors"] == ["A. Writer"]


def test_a_what_if_is_not_exported(command):
    ended = command("registry", "export", "psa-2010")
    assert ended.code == 2
    assert "nothing was released this way" in ended.err


def test_a_folder_that_is_no_release_is_refused(tmp_path, command):
    assert command("registry", "export", tmp_path, *GIVEN).code == 2


def test_a_record_is_imported_in_words_and_as_json(command):
    ended = command("registry", "import", VISITS)
    assert ended.code == 0
    assert "rho = 0.125" in ended.out and "night clinics" in ended.out
    fields = json.loads(command("registry", "import", VISITS, "--json").out)
    assert fields["budget"]["value"] == "0.125"


def test_what_is_no_record_is_refused(tmp_path, command):
    (tmp_path / "bad.yaml").write_text("a: [b", encoding="utf-8")
    ended = command("registry", "import", tmp_path / "bad.yaml")
    assert ended.code == 2
    assert "not a record of the deployments registry" in ended.err
