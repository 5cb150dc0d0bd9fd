"""The format of a record of the public deployments registry: its sections, its fields, and what each may hold.

The registry publishes a JSON schema; this is the same in a table of our own, so that a record can be read, checked and
written without that file. Order here is the order of the fields in what is written.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import yaml

from stirred import _received, errors

TEXT, TEXTS, NUMBER, NUMBER_OR_TEXT = "text", "a list of texts", "a number", "a number or a text"
STATUSES = (
    "Converted",
    "Draft",
    "Pending",
    "Changes Required",
    "Approved",
    "Approved (Update Requested)",
    "Approved (Pending)",
)
PRODUCT_TYPES = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")

FIELDS: dict[str, dict[str, Any]] = {
    "basic": {
        "name": TEXT,
        "data_curators": TEXTS,
        "intended_use": TEXT,
        "data_product_type": PRODUCT_TYPES,
        "data_product_region": TEXT,
        "description": TEXT,
        "publication_date": TEXT,
        "data_product_sector": SECTORS,
    },
    "dp_variant": {"variant_name": VARIANTS, "data_domain": TEXT, "unprotected_quantities": TEXT},
    "privacy_loss": {
        "privacy_unit": TEXT,
        "privacy_unit_details": TEXT,
        "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER_OR_TEXT, "rho": NUMBER},
        "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": ("Local", "Central", "Shuffle", "Federated", "Varies"),
        "model_name_details": TEXT,
        "actors": TEXT,
        "release_type": ("One release", "Many releases"),
        "release_type_details": TEXT,
        "data_source_type": ("Static", "Dynamic"),
        "data_source_type_details": TEXT,
        "access_type": ("Interactive", "Non-interactive"),
        "access_type_details": TEXT,
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {"preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT},
    "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": TEXTS},
}
REQUIRED = {
    "basic": tuple(field for field in FIELDS["basic"] if field != "data_product_sector"),
    "administrative": ("registry_authors",),
}
TIER_2 = ("dp_variant.variant_name", "privacy_loss.privacy_unit", "deployment_model.model_name")
TIER_3 = (
    "dp_variant.data_domain",
    "dp_variant.unprotected_quantities",
    "privacy_loss.privacy_unit_details",
    "deployment_model.actors",
    "accounting.post_processing",
    "accounting.composition",
    "implementation.preprocessing_and_hyperparameter_tuning",
    "implementation.mechanisms",
    "implementation.justification",
)


MOST_NUMBER = 1e100
"""The largest epsilon, delta or rho that a record may state."""
MOST_CHARACTERS = 200_000
"""How long a record may be; those of the registry have some thousand characters."""


class _Loader(yaml.SafeLoader):
    """Plain YAML: nothing by reference, since a few lines of references can stand for a thousand million fields."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError
        self._depth += 1
        if self._depth > _received.MOST_DEPTH:
            raise yaml.YAMLError
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def parse(text: str) -> dict[str, Any]:
    """The record in a YAML text, checked."""
    if len(text) > MOST_CHARACTERS:
        raise errors.not_a_registry_record(f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        record = yaml.load(text, _Loader)  # nosec B506 # _Loader is a SafeLoader that also refuses aliases
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        raise errors.not_a_registry_record("it is not YAML, or not plain YAML") from None
    if not isinstance(record, dict):
        raise errors.not_a_registry_record("it has no fields")
    deployment = record.get("deployment")
    basic = deployment.get("basic") if isinstance(deployment, dict) else None
    if isinstance(basic, dict) and isinstance(basic.get("publication_date"), datetime.date):
        basic["publication_date"] = basic["publication_date"].isoformat()  # a date without quotes
    validate(record)
    return record


def validate(record: Mapping[str, Any]) -> None:
    """Refuse a record that lacks a required field, has one too many, or holds what a field may not."""
    top = {"url_slug": TEXT, "status": STATUSES, "tier": (1, 2, 3), "deployment": {}}
    _only(record, top, "the record")
    for name, kind in top.items():
        if name not in record:
            raise errors.registry_field(name, "is missing")
        if name != "deployment":
            _check(name, record[name], kind)
    deployment = record["deployment"]
    _table("deployment", deployment)
    _only(deployment, FIELDS, "deployment")
    if "basic" not in deployment:
        raise errors.registry_field("deployment.basic", "is missing")
    for section, content in deployment.items():
        _table(section, content)
        _only(content, FIELDS[section], section)
        for name in REQUIRED.get(section, ()):
            if name not in content:
                raise errors.registry_field(f"{section}.{name}", "is missing")
        for name, value in content.items():
            _check(f"{section}.{name}", value, FIELDS[section][name])
    try:
        datetime.date.fromisoformat(deployment["basic"]["publication_date"])
    except ValueError:
        raise errors.registry_field("basic.publication_date", "is a date such as 2021-08-01") from None


def tier(deployment: Mapping[str, Any]) -> int:
    """How complete a record is: 3 with everything the registry asks for, 2 with the guarantee, 1 without."""
    filled = {f"{section}.{name}" for section, content in deployment.items() for name in content}
    if not filled.issuperset(TIER_2):
        return 1
    return 3 if filled.issuperset(TIER_3) else 2


def ordered(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its fields in the order of the format."""
    deployment = record["deployment"]
    sections = {
        section: {name: deployment[section][name] for name in fields if name in deployment[section]}
        for section, fields in FIELDS.items()
        if deployment.get(section)
    }
    return {name: record[name] for name in ("url_slug", "status", "tier")} | {"deployment": sections}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they stand; nothing is said by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(record: Mapping[str, Any]) -> str:
    """The YAML of a record; :func:`parse` gives it back."""
    return yaml.dump(dict(record), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _table(place: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise errors.registry_field(place, "holds fields")


def _only(content: Mapping[str, Any], known: Mapping[str, Any], place: str) -> None:
    strange = sorted(str(name) for name in content if name not in known)
    if strange:
        raise errors.registry_field(place, f"has no field {errors.listed(strange)}")


def _check(place: str, value: Any, kind: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(kind, dict):
        _table(place, value)
        _only(value, kind, place)
        for name, inner in value.items():
            _check(f"{place}.{name}", inner, kind[name])
    elif isinstance(kind, tuple):
        if value not in kind or isinstance(value, bool):
            raise errors.registry_field(place, "is one of " + ", ".join(map(str, kind)))
    elif kind == TEXTS:
        if not (isinstance(value, list) and value and all(isinstance(item, str) and item for item in value)):
            raise errors.registry_field(place, "is a list of one text or more")
    elif kind == NUMBER_OR_TEXT and isinstance(value, str):
        return
    elif kind == TEXT:
        if not isinstance(value, str):
            raise errors.registry_field(place, f"is {TEXT}")
    elif not number or not 0 <= value <= MOST_NUMBER:
        raise errors.registry_field(place, f"is {kind} from 0 to {MOST_NUMBER:g}")
