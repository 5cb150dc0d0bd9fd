"""To and from the public registry of deployments: its YAML records, and our specifications.

The registry publishes a JSON schema for its records; :data:`FIELDS` is the same in a table of our own, so that a record
can be read, checked and written without that file, in the order of its fields.

A record is prose with a few fields that can be computed with; a specification is the reverse. Reading keeps the record
whole and takes from it only what it says: a unit or a neighbour relation in words that are not understood stays a name
that nothing is deduced from, and a finding says so. Writing fills what the specification knows and asks for the rest.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from stirred import _bounded_reading, errors
from stirred.errors.kinds import capital
from stirred.spec.blocks import Budget, Domain, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.exact import exact, written
from stirred.spec.invariant import Invariant, plural
from stirred.spec.known_deployments.deployments import Deployment
from stirred.spec.specification import Finding, Specification

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
        if self._depth > _bounded_reading.MOST_DEPTH:
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


RENYI, CUSTOM = "Renyi DP", "Custom"
"""The variant whose order has no field of its own, and the one of standards that the registry has no name for."""
UNITS = ("person", "individual", "household", "user", "device", "event", "user-day", "record", "establishment")
NOTHING = {"", "n/a", "na", "none", "-"}
SOURCE = "deployments registry"
UNBOUNDED = r"unbounded|added? (or|and) remove|add/remove|add-or-remove"
BOUNDED = r"\bbounded|change-one|equal size|replac|remains the same"
NEAREST = "the nearest datasets of a universe are ([0-9]{1,18}) apart"
"""What :meth:`Specification.nearest_words` says, so that a record of ours comes back with it."""

# -- reading -------------------------------------------------------------------------------------------------


def from_registry(source: str | Path) -> Deployment:
    """The deployment in a registry record, given as YAML text or as a path; ``registry`` keeps the whole record."""
    if isinstance(source, Path) or "\n" not in source:
        try:
            source = _bounded_reading.read_text(Path(source), MOST_CHARACTERS)
        except _bounded_reading.Unacceptable as problem:
            raise errors.not_a_registry_record(str(problem)) from None
        except (OSError, ValueError):
            raise errors.not_a_registry_record(f"there is no readable file {source}") from None
    record = parse(source)
    basic = record["deployment"]["basic"]
    administrative = record["deployment"].get("administrative", {})
    return Deployment(
        name=record["url_slug"],
        title=basic["name"],
        kind="deployment",
        specification=_specification(record),
        sources=tuple(_items(administrative.get("sources", ""))),
        notes=tuple(_items(administrative.get("notes", ""))),
        registry=record,
    )


def _specification(record: Mapping[str, Any]) -> Specification:
    deployment = record["deployment"]
    variant, loss = deployment.get("dp_variant", {}), deployment.get("privacy_loss", {})
    findings: list[Finding] = []
    output, budget = _output(variant.get("variant_name"), loss, findings)
    apart = re.search(NEAREST, " ".join(loss.get("privacy_unit_details", "").lower().split()))
    return Specification(
        _domain(variant, deployment["basic"]["name"], findings),
        _multiverse(variant, findings),
        _input(loss, findings),
        output,
        budget,
        nearest=int(apart[1]) if apart else None,
        name=record["url_slug"],
        covers=(deployment["basic"]["name"],),
        findings=tuple(findings),
    )


def _finding(findings: list[Finding], id: str, words: str) -> None:
    findings.append(Finding(f"registry-{id}", words, source=SOURCE))


def _domain(variant: Mapping[str, Any], name: str, findings: list[Finding]) -> Domain:
    said = " ".join(variant.get("data_domain", "").split())
    if not said:
        _finding(findings, "domain-unstated", "The record does not say which datasets there could have been.")
    return Domain(said or f"the data of '{name}'")


def _multiverse(variant: Mapping[str, Any], findings: list[Finding]) -> Multiverse:
    if "unprotected_quantities" not in variant:
        _finding(findings, "invariants-unstated", "The record does not say whether anything was released as it is.")
    items = _items(variant.get("unprotected_quantities", ""))
    return Multiverse(tuple(Invariant(name=item) for item in items))


def _input(loss: Mapping[str, Any], findings: list[Finding]) -> InputPremetric:
    """Neighbours of one unit, where both the unit and what a neighbour is are said clearly."""
    said = " ".join(loss.get("privacy_unit", "").split())
    plain = re.sub(r"[\s_-]*levels?$", "", said.lower().rstrip(". "))
    details = " ".join(loss.get("privacy_unit_details", "").split())
    if not said:
        _finding(findings, "unit-unstated", "The record does not say whose data is protected.")
        return InputPremetric.relation("neighbours as the deployment defined them", "unit")
    if plain not in UNITS:
        _finding(findings, "unit-unclear", f"'{said}' names no single unit, so nothing is deduced from it.")
        return InputPremetric.relation(said, said, words=details)
    unit = "person" if plain == "individual" else plain
    # A number of units is a distance; neighbours alone are compared where the record speaks of no more.
    counted = bool(re.match(r"the number of ", details.lower()))
    for bounded, pattern in ((False, UNBOUNDED), (True, BOUNDED)):
        if re.search(pattern, details.lower()):
            return InputPremetric("records", unit, bounded, sharpened=counted, words=details)
    words = f"The record does not say what makes neighbours of one {unit}: replaced, or added and removed."
    _finding(findings, "neighbours-unstated", words)
    return InputPremetric.relation(said, unit, words=details)


def _output(name: str | None, loss: Mapping[str, Any], findings: list[Finding]) -> tuple[OutputPremetric, Budget]:
    given = loss.get("privacy_parameters", {})
    numbers = {key: _parameter(key, value) for key, value in given.items()}
    order = re.search(r"alpha\W{0,6}=\s*([0-9]+(?:\.[0-9]+)?)", loss.get("privacy_parameters_details", ""))
    epsilon, delta, rho = (numbers.get(key) for key in ("epsilon", "delta", "rho"))
    if name in ("Zero-concentrated DP", "Renyi DP") and rho is not None:
        return OutputPremetric("normalised-renyi"), Budget(rho, conversion="as the record has it")
    if name == "Renyi DP" and order and epsilon is not None:
        return OutputPremetric("renyi", exact(order[1], "alpha")), Budget(epsilon, conversion="as the record has it")
    if name == "Pure DP" and epsilon is not None and not delta:
        return OutputPremetric("multiplicative"), Budget(epsilon, conversion="as the record has it")
    if name in ("Approximate DP", "Zero-concentrated DP", "Renyi DP") and None not in (epsilon, delta):
        if name != "Approximate DP":
            words = f"The record names {name} and gives epsilon and delta: by which conversion is not said."
            _finding(findings, "converted", words)
        return OutputPremetric("approximate", delta), Budget(epsilon, conversion="as the record has it")
    if name is None or name == "Custom":
        raise errors.registry_without_guarantee(f"its variant is {f'{name!r}' if name else 'not given'}")
    held = errors.listed(given) if given else "none"
    raise errors.registry_without_guarantee(f"'{name}' with the parameters {held} is no budget")


def _parameter(name: str, value: Any) -> Fraction | float:
    """A number, also where it is written as a power: 10^-6, 1e-6."""
    if isinstance(value, str):
        power = re.fullmatch(r"\W*10\s*(?:\^|\*\*)\s*\{?\s*(-?[0-9]{1,4})\s*\}?\W*", value)
        value = f"1e{power[1]}" if power else value
    return exact(value, name)


def _items(text: str) -> list[str]:
    """The items of a list in Markdown, those below an item joined to it; a text without items is one."""
    items: list[str] = []
    top: int | None = None
    for line in text.splitlines():
        words, indent = line.strip(), len(line) - len(line.lstrip())
        if not words:
            continue
        bullet = words[:2] in ("- ", "* ") or words in ("-", "*")
        words = words[2:].strip() if bullet else words
        if bullet and (top is None or indent <= top):
            top = indent
            items.append(words)
        elif items:
            items[-1] += (" " if not bullet or items[-1].endswith(":") else ", ") + words
        else:
            items.append(words)
    return [item.rstrip(". ") for item in items if item.lower().strip(" .") not in NOTHING]


# -- writing -------------------------------------------------------------------------------------------------


def details(
    *,
    name: str = "",
    curators: Iterable[str] = (),
    use: str = "",
    region: str = "",
    date: str = "",
    type: str = "",
    description: str = "",
    sector: str = "",
    authors: Iterable[str] = (),
) -> dict[str, Any]:
    """What the registry asks for and no specification knows, as a part of a record."""
    basic = {
        "name": name,
        "data_curators": list(curators),
        "intended_use": use,
        "data_product_region": region,
        "publication_date": date,
        "data_product_type": type,
        "description": description,
        "data_product_sector": sector,
    }
    found: dict[str, Any] = {"basic": {key: value for key, value in basic.items() if value}}
    if authors := list(authors):
        found["administrative"] = {"registry_authors": authors}
    return {"deployment": found}


OPTIONS = {
    "name": "name",
    "data_curators": "curator",
    "intended_use": "use",
    "data_product_region": "region",
    "publication_date": "date",
    "data_product_type": "type",
    "description": "description",
}
"""Required fields and the options that give them."""


def to_registry(specification: Specification, *details: Mapping[str, Any]) -> str:
    """The registry record of a specification, as YAML.

    ``details`` are records or parts of one (see :func:`details`), and win wherever they say something, the later over
    the earlier; if they have a guarantee of their own, that must be the specification's. A record that was imported
    comes back as it was.
    """
    if specification.marks:
        raise errors.not_for_registry("This specification", specification.marks[0])
    given: dict[str, dict[str, Any]] = {}
    for part in details:
        for section, content in part.get("deployment", {}).items():
            given.setdefault(section, {}).update(content)
    stated = {name: value for part in details for name, value in part.items()}
    if given.get("privacy_loss", {}).get("privacy_parameters") is not None:
        _require_same(specification, given)
        known: dict[str, dict[str, Any]] = {}  # the record speaks for itself
    else:
        known = _sections(specification)
    deployment = {section: known.get(section, {}) | given.get(section, {}) for section in {**known, **given}}
    missing = [option for field, option in OPTIONS.items() if field not in deployment.get("basic", {})]
    administrative = deployment.get("administrative", {})
    if administrative and "registry_authors" not in administrative:
        missing.append("author")  # only who exports the record knows who wrote it
    if missing:
        raise errors.registry_details_missing(missing)
    basic = deployment["basic"]
    record = {
        "url_slug": stated.get("url_slug") or _slug(basic),
        "status": stated.get("status", "Draft"),
        "tier": stated.get("tier", tier(deployment)),
        "deployment": deployment,
    }
    validate(record)
    return dump(ordered(record))


def _require_same(specification: Specification, given: Mapping[str, Any]) -> None:
    output, budget = _output(given.get("dp_variant", {}).get("variant_name"), given["privacy_loss"], [])
    if (output, budget.number) != (specification.output_premetric, specification.budget.value):
        mine, theirs = specification.budget.shown(), budget.shown()
        symbol = specification.output_premetric.symbol
        raise errors.SpecificationError(
            "registry-contradicts",
            f"The registry record has the guarantee {output.symbol} at {theirs}, the specification {symbol} at {mine}.",
            "Export the specification that the record describes, or correct one of the two.",
        )


def _sections(specification: Specification) -> dict[str, dict[str, Any]]:
    """What a specification knows, in the fields of a record."""
    output = specification.output_premetric
    invariants = specification.multiverse.invariants
    unprotected = "\n".join(f"- {invariant}" for invariant in invariants) if invariants else "N/A"
    if specification.multiverse.universes:
        unprotected = str(specification.multiverse)
    basic = {}
    if specification.fact.get("mechanism") == "permutation-swapping":
        basic["data_product_type"] = "Dataset"
    if specification.covers:
        basic["description"] = _sentence("; ".join(specification.covers))
    sections: dict[str, dict[str, Any]] = {
        "basic": basic,
        "dp_variant": {
            "variant_name": output.kind.registry_variant,
            "data_domain": str(specification.domain),
            "unprotected_quantities": unprotected,
        },
        "privacy_loss": {
            "privacy_unit": f"{specification.input_premetric.unit.capitalize()}-level",
            "privacy_unit_details": _unit_details(specification),
            "privacy_parameters": _parameters(specification),
            "privacy_parameters_details": _parameter_details(specification),
        },
    }
    if mechanisms := mechanism_words(specification):
        sections["deployment_model"] = {
            "model_name": "Central",
            "release_type": "One release",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        }
        sections["implementation"] = {"mechanisms": mechanisms}
        if tuning := _tuning(specification):
            sections["implementation"]["preprocessing_and_hyperparameter_tuning"] = tuning
    if specification.findings:
        notes = [f"- {finding.id}: {finding.words}" for finding in specification.findings]
        sections["administrative"] = {"notes": "\n".join(notes)}
    return sections


def _unit_details(specification: Specification) -> str:
    premetric = specification.input_premetric
    said = [_sentence(dict(specification.blocks())["input premetric"]), _sentence(specification.nearest_words())]
    if premetric.kind == "records" and premetric.bounded:
        said.append("Files of different sizes are not compared: the number of records counts as unprotected.")
    for coarse in premetric.stays_in:
        said.append(f"The number of {plural(premetric.unit)} in each {coarse} counts as unprotected too.")
    return " ".join(said)


def _parameters(specification: Specification) -> dict[str, float]:
    output, budget = specification.output_premetric, specification.budget
    if output.kind.registry_variant == CUSTOM or budget.number == math.inf:
        return {}
    found = {"rho" if output.kind.budget_is_rho else "epsilon": _up(budget.number)}
    if output.kind.takes_off:
        found["delta"] = _up(output.at)
    return found


def _parameter_details(specification: Specification) -> str:
    output, budget = specification.output_premetric, specification.budget
    said = [f"{output.kind.budget} = {budget}", str(output)]
    if budget.value == math.inf:
        said.append("The budget is infinite: nothing is guaranteed.")
    elif output.kind.registry_variant == RENYI:
        said.append(f"alpha = {written(exact(output.at))}.")
    if budget.varies:
        said.append(f"The budget is that of the realised universe: {budget.varies}.")
    return " ".join(_sentence(part) for part in said)


def mechanism_words(specification: Specification, more: Iterable[str] = ()) -> str:
    """The mechanism's facts as a list; empty if nothing is known of it."""
    shown = ("mechanism", "rate", "rates", "match", "swap", "largest_stratum")
    facts = [f"- {name.replace('_', ' ')}: {specification.fact[name]}" for name in shown if name in specification.fact]
    return "\n".join([*facts, *(f"- {item}" for item in more)]) if facts else ""


def _tuning(specification: Specification) -> str:
    fact, said = specification.fact, []
    if specification.domain.starts:
        said.append(f"- The guarantee starts at {specification.domain.starts}; what came before is not covered.")
    if fact.get("imputed"):
        said.append("- Records were imputed before: a respondent whose record was used for another's touches several.")
    if "parameters_from" in fact:
        said.append(f"- Where the parameters came from: {fact['parameters_from']}.")
    if "looked_at" in fact:
        said.append(f"- What of the data was looked at for it: {fact['looked_at']}.")
    return "\n".join(said)


def _up(value: Fraction | float) -> float:
    """The double at or above an exact number."""
    near = float(value)
    return near if exact(near) >= value else math.nextafter(near, math.inf)


def _slug(basic: Mapping[str, Any]) -> str:
    words = f"{basic['name']} {basic['data_curators'][0]} {str(basic['publication_date'])[:4]}"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _sentence(words: str) -> str:
    return capital(words) + ("" if words.endswith((".", "!", "?")) else ".")
