"""Known deployments and what-ifs, with their five blocks, read from the data files of ``stirred/deployments``.

A file holds any number of ``[[deployment]]`` tables and may have a ``[shared]`` one: tables merge with it, lists follow
it, everything else is the deployment's own. Numbers are kept as text, so that budgets are exact. What the sources print
differently from one another, or from what follows from their own numbers, is kept with both values as an erratum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from stirred import errors
from stirred._display import brief, html_table
from stirred.spec.exact import Exact
from stirred.spec.facts import PART_OF, PRODUCTS_NOT_COVERED
from stirred.spec.known_deployments.accounts import Erratum, account
from stirred.spec.known_deployments.names import close, meant, tables
from stirred.spec.specification import FORMAT_VERSION, KEY, Finding, Specification, from_fields


@dataclass(frozen=True)
class Part:
    """A share of the budget: what it was spent on, and the unit that share protects."""

    what: str
    unit: str
    budget: Exact


@dataclass(frozen=True)
class Published:
    """A number as printed somewhere, and how it was reached.

    ``of`` is the budget it was converted from as printed beside it, ``unrounded`` the one that explains it where the
    printed one does not (then ``erratum`` names the entry that says so).
    """

    what: str
    value: str
    conversion: str
    source: str
    delta: Exact | None = None
    of: Exact | None = None
    unrounded: Exact | None = None
    erratum: str = ""

    @property
    def how(self) -> str:
        """The conversion, and the delta it was made at."""
        return self.conversion + (f" at delta = {float(self.delta):g}" if self.delta else "")


@brief
@dataclass(frozen=True)
class Deployment:
    """One guarantee as it is known from publications."""

    name: str
    title: str
    kind: str
    """``deployment``, or ``what-if`` for a mechanism that released nothing."""
    specification: Specification
    sources: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    part_of: str = ""
    """The deployment that is all known releases from the same data together."""
    not_covered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    published: tuple[Published, ...] = ()
    errata: tuple[Erratum, ...] = ()
    registry: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The record of the public registry, or the part of it that no specification knows."""

    @property
    def products(self) -> tuple[str, ...]:
        """What was released under the guarantee."""
        return self.specification.covers

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The errata as findings, to be printed with the guarantee."""
        return tuple(
            Finding(e.id, f"printed: {e.printed}; here: {e.correct}", e.explanation, self.sources[0])
            for e in self.errata
        )

    def _repr_html_(self) -> str:
        rows = [(row, False) for row in self._rows()]
        return self.specification._repr_html_() + html_table(("deployment", self.name), rows)

    def __str__(self) -> str:
        rows = [f"{name + ':':18}{words}" for name, words in self._rows()]
        return "\n".join([str(self.specification), *rows])

    def _rows(self) -> list[tuple[str, str]]:
        """Everything but the specification, as pairs of a heading and a text."""
        return [
            ("title", self.title),
            *(("not covered", product) for product in self.not_covered),
            *([("part of", str(self.specification.fact[PART_OF]))] if self.part_of else []),
            *(("part", f"{part.what} ({part.unit}): {float(part.budget):g}") for part in self.parts),
            *(("published", f"{p.what}: {p.value} ({p.how}; {p.source})") for p in self.published),
            *(("erratum", f"{e.id}: printed {e.printed}; here {e.correct}. {e.explanation}") for e in self.errata),
            *(("note", note) for note in self.notes),
            *(("source", source) for source in self.sources),
        ]


def deployment(name: str) -> Deployment:
    """The deployment that a name means; capitals, underscores and spaces do not matter. Refused, with what is missing,
    if not every building block of its guarantee is stated.

    >>> print(deployment("das-2020-overall").specification.budget)
    55.371 (sum of rho: 15.29 + 19.776 + 17.79 + 2.515)
    >>> deployment("psa-2010").name  # the rate with the larger epsilon
    'psa-2010-p02'
    """
    found = find(name)
    if found is None:
        raise errors.unknown_deployment(name, close(name))
    return found


def find(name: str) -> Deployment | None:
    """The deployment that a name means, or None if there is none."""
    found = meant(name)
    return None if found is None else _built(found)


# -- reading -------------------------------------------------------------------------------------------------


@cache
def _built(name: str) -> Deployment:
    known = tables()
    fields = dict(known.deployments[name])
    fields.pop("account", None)
    if "specification" not in fields:
        open_ones = account(name)
        raise errors.deployment_without_guarantee(name, open_ones.missing, open_ones.typed)
    blocks = dict(fields.pop("specification"))
    blocks["domain"] = known.domains[fields.pop("domain")]
    facts = dict(blocks.get("facts", {}))
    if fields.get("not_covered"):
        facts[PRODUCTS_NOT_COVERED] = "; ".join(fields["not_covered"])
    if whole := fields.get("part_of"):
        together = _built(whole).specification
        facts[PART_OF] = (
            f"{together.output_premetric.kind.budget} = {together.budget.shown()} for all that '{whole}' covers"
        )
    blocks["facts"] = list(facts.items())
    specification = from_fields({KEY: FORMAT_VERSION, "name": fields["name"], **blocks})
    if sections := fields.pop("registry", None):
        fields["registry"] = {"deployment": sections}
    return _adapter().validate_python({**fields, "specification": specification})


@cache
def _adapter() -> TypeAdapter[Deployment]:
    for known in (Part, Published, Erratum, Deployment):
        known.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[union-attr]
    return TypeAdapter(Deployment)
