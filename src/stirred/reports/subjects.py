"""What a report is about: a release, a plan, a known deployment, or a guarantee by itself, with its explanation.

A release also has the section about its context: what its plan answers about the five safes and contextual integrity,
and which of them the guarantee speaks about. A release and a deployment have a record for the public registry.

Keep in mind: a plan's data are never read here. A folder is taken as it is, and the report says so.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors
from stirred._bounded_reading import is_file, plain
from stirred._display import brief
from stirred.mechanisms import CERTIFICATE, as_received, mechanism_of_plan, named, open_release
from stirred.semantics import Explanation, explain
from stirred.spec import Specification
from stirred.spec.loading import load

if TYPE_CHECKING:
    from stirred.releases.context import Context
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.mechanism import AnalystNote, Mechanism
    from stirred.releases.plans import Plan
    from stirred.spec.known_deployments.allocations import Allocation
    from stirred.spec.known_deployments.deployments import Deployment


def of_release(what: str | Path) -> Context | None:
    """The answers in the plan of a release; None where there are none, or where ``what`` is not a release folder."""
    if not is_file(Path(what) / CERTIFICATE):
        return None
    from stirred.releases.folder.release_folder import ReleaseFolder

    return of_opened(ReleaseFolder.open(what))


def of_opened(release: ReleaseFolder) -> Context | None:
    """The answers in the plan of an opened release; None where there are none."""
    from stirred.releases.context import Context

    stated = release.certificate["plan"].get("context")
    try:
        return None if stated is None else Context(**stated)
    except (TypeError, ValueError):
        raise errors.not_a_release(release.path, "the section 'context' of its plan cannot be read") from None


def as_text(context: Context | None) -> str:
    """The section as text for the terminal, below an empty line; empty without answers."""
    if context is None:
        return ""
    from stirred.releases.context import words
    from stirred.releases.folder.documents import context_section

    return f"\n{context_section(context, words('heading').upper())}"


def as_fields(context: Context | None) -> dict[str, Any]:
    """The section as a field ``context``, ready for JSON; no field without answers."""
    if context is None:
        return {}
    from stirred.releases.context import parameters, safes

    answers = context.answers()
    return {
        "context": {
            "flow": list(context.flow),
            "safes": [
                {"name": safe.name, "answer": answers.get(safe.name), "guarantee_speaks": safe.spoken_of}
                for safe in safes()
            ],
            "parameters": [
                {"name": one.name, "answer": answers.get(one.name), "safes": list(one.safes)} for one in parameters()
            ],
        }
    }


MOST_ROWS = 1_000_000
"""Rows of a release up to which pairs of its records are looked at: a report must not take longer than a release."""
MIDDLE = 0.05
"""The false-alarm probability of numbers that are told at one, where it is among those asked for."""
_LONGEST_NAME = 120


@brief
@dataclass(frozen=True)
class Subject:
    """One guarantee of a report, and where it comes from."""

    name: str
    explanation: Explanation
    context: Context | None = None
    release: ReleaseFolder | None = None
    mechanism: Mechanism | None = None
    plan: Plan | None = None
    deployment: Deployment | None = None
    folder: str = ""
    """How the folder of the release is called in commands to copy."""

    @property
    def specification(self) -> Specification:
        """The guarantee."""
        return self.explanation.specification

    @property
    def certificate(self) -> Mapping[str, Any]:
        """What the certificate of the release states; empty where there is none."""
        return self.release.certificate if self.release is not None else {}

    @property
    def published_plan(self) -> Mapping[str, Any]:
        """The plan as a release publishes it; empty where there is none."""
        if self.plan is not None:
            return self.plan.published()
        stated = self.certificate.get("plan")
        return stated if isinstance(stated, dict) else {}

    @property
    def unseen_rows(self) -> bool:
        """Whether a table of the release has so many rows that no pairs of its records were looked at."""
        return self.release is not None and any(one["rows"] > MOST_ROWS for one in self.release.dictionary.values())

    def alone(self) -> Subject:
        """The subject of a page about nothing else: a release is then named so that the page is the same wherever its
        folder lies, and commands are typed in the folder."""
        if self.release is None:
            return self
        dataset = self.published_plan.get("dataset")
        name = f"the release of {plain(dataset, _LONGEST_NAME)}" if isinstance(dataset, str) else "this release"
        setting = self.explanation.setting
        nameless = replace(setting, specification=replace(setting.specification, name=""))
        return replace(self, name=name, folder=".", explanation=replace(self.explanation, setting=nameless))

    @property
    def notes(self) -> tuple[AnalystNote, ...]:
        """What analysts of the release need to know; empty where its documents do not fit each other."""
        if self.release is None or self.mechanism is None:
            return ()
        try:
            return tuple(self.mechanism.for_analysts(self.release))
        except (errors.StirredError, KeyError, IndexError, TypeError, ValueError, AttributeError):
            return ()


def subject(
    what: Specification | Explanation | Plan | str | Path,
    *,
    explanation: Explanation | None = None,
    context: Context | None = None,
    options: Mapping[str, Any] | None = None,
) -> Subject:
    """What is to be reported, read and explained.

    ``explanation`` is one that was made already; ``options`` are those of the plan's mechanism for a report, such as a
    largest stratum.
    """
    from stirred.releases.plans import Plan

    if isinstance(what, Explanation):
        return Subject(_name(what.specification, "this guarantee"), what, context)
    if isinstance(what, Plan) or (isinstance(what, str | Path) and is_plan(what)):
        return _planned(what, options or {})
    if options:
        raise errors.report_option(_option(next(iter(options))), "is for plans whose data are not read")
    if isinstance(what, str | Path) and is_file(Path(what) / CERTIFICATE):
        return of_folder(*open_release(what), explanation, context)
    explanation = explanation or explained(what)
    if isinstance(what, Specification):
        return Subject(_name(what, "this guarantee"), explanation, context)
    name = _name(explanation.specification, Path(what).name or str(what))
    return Subject(name, explanation, context, deployment=_deployment(what))


def of_folder(
    mechanism: Mechanism,
    release: ReleaseFolder,
    explanation: Explanation | None = None,
    context: Context | None = None,
) -> Subject:
    """A release as the subject of a report; from its public files alone, also while it is being written."""
    explanation = explanation or _explained_folder(mechanism, release)
    folder = release.path.resolve().name or "."
    name = _name(explanation.specification, folder)
    return Subject(name, explanation, context or of_opened(release), release, mechanism, folder=folder)


def _planned(what: Plan | str | Path, options: Mapping[str, Any]) -> Subject:
    if isinstance(what, str | Path):
        mechanism = mechanism_of_plan(what)
        plan, name = mechanism.read_plan(what), Path(what).name
    else:
        mechanism, plan, name = named(what.mechanism), what, "this plan"
    known = {option.keyword for option in mechanism.options.get("report", ())}
    for keyword in options:
        if keyword not in known:
            raise errors.report_option(_option(keyword), f"is not for plans of the {mechanism.title}")
    explanation = explain(mechanism.specify_plan(plan, **options))
    return Subject(_name(explanation.specification, name), explanation, plan.context, None, mechanism, plan)


def explained(
    what: Specification | str | Path,
    *,
    allocation: Allocation | None = None,
    concerns: Sequence[str] = (),
    levels: Sequence[float] | None = None,
    pairs: Sequence[str] = (),
    **given: Any,
) -> Explanation:
    """A guarantee explained, as :func:`stirred.explain` does: that of a release with what its mechanism knows of it."""
    chosen = {name: value for name, value in {"levels": levels, **given}.items() if value}
    if isinstance(what, Specification):
        if pairs:
            raise errors.bad_pair(pairs[0], "pairs are looked up in a release folder, and a specification has none")
        return explain(what, allocation=allocation, concerns=concerns, **chosen)
    specification = load(str(what))
    own = None
    if is_file(Path(what) / CERTIFICATE):
        mechanism, opened = open_release(what)
        allocation = _allocation(mechanism, opened) if allocation is None else allocation
        level = levels[0] if levels and MIDDLE not in levels else MIDDLE
        own = _exposure(mechanism, opened, pairs, level)
    elif pairs:
        raise errors.bad_pair(pairs[0], "pairs are looked up in a release folder")
    return explain(specification, allocation=allocation, concerns=concerns, own=own, **chosen)


def _explained_folder(mechanism: Mechanism, release: ReleaseFolder) -> Explanation:
    """The guarantee of an opened release explained; its rows are looked at only if no table has too many."""
    from stirred.releases.folder.documents import read_specification

    few = all(table["rows"] <= MOST_ROWS for table in release.dictionary.values())
    allocation = _allocation(mechanism, release)
    own = _exposure(mechanism, release, (), MIDDLE) if few else None
    return explain(read_specification(release.path), allocation=allocation, own=own)


def _allocation(mechanism: Mechanism, release: ReleaseFolder) -> Allocation | None:
    """How the budget of a release is divided, where its mechanism divides it."""
    with as_received(release.path):
        return mechanism.allocation(release)


def _exposure(mechanism: Mechanism, release: ReleaseFolder, pairs: Sequence[str], level: float) -> Any:
    """How well tests can do on a release by the law of its mechanism."""
    try:
        with as_received(release.path):
            return mechanism.exposure(release, pairs, level)
    except errors.StirredError:
        if pairs:
            raise
        return None  # tables that cannot be read do not keep the documents from being explained


def _deployment(what: str | Path) -> Deployment | None:
    from stirred.spec.known_deployments import deployments
    from stirred.spec.known_deployments.names import exactly

    if "=" in str(what) or (Path(what).exists() and exactly(str(what)) is None):
        return None
    return deployments.find(str(what))


def is_plan(what: str | Path) -> bool:
    """Whether this is the path of a plan file."""
    path = Path(what)
    if path.suffix.lower() != ".toml" or not is_file(path):
        return False
    try:
        return "mechanism" in tomllib.loads(path.read_text(encoding="utf-8")[:4_000_000])
    except (OSError, ValueError):
        return True  # reading it as a plan says what is wrong with it


def _name(specification: Specification, otherwise: str) -> str:
    return plain(specification.name or otherwise, _LONGEST_NAME)


def _option(keyword: str) -> str:
    return "--" + keyword.replace("_", "-")


# -- records for the public registry --------------------------------------------------------------------------------

NOT_STATED = "not stated"


def record_of_deployment(known: Deployment) -> dict[str, Any]:
    """The part of a record that a known deployment brings; raises where nothing was released this way."""
    if known.kind != "deployment":
        raise errors.not_for_registry(f"'{known.name}'", "it is hypothetical, and nothing was released this way")
    sources = {"sources": "\n".join(f"- {source}" for source in known.sources)}
    notes = [f"- {erratum.id}: {erratum.explanation}" for erratum in known.errata] + [f"- {n}" for n in known.notes]
    record: dict[str, Any] = json.loads(json.dumps(known.registry))
    record["deployment"]["administrative"] = sources | ({"notes": "\n".join(notes)} if notes else {})
    return record


def record_of_certificate(certificate: Mapping[str, Any], specification: Specification) -> dict[str, Any]:
    """What a release's certificate adds: where its randomness came from, and the program that made it."""
    from stirred.spec.known_deployments.registry import mechanism_words

    versions = certificate.get("versions", {})
    more = [f"randomness: {certificate.get('randomness', NOT_STATED)}"]
    more += [f"made with stirred {versions['stirred']}"] if "stirred" in versions else []
    mechanisms = mechanism_words(specification, more)
    return {"deployment": {"implementation": {"mechanisms": mechanisms}}} if mechanisms else {}


def draft_record(one: Subject) -> str:
    """The registry's record of a known deployment, or of a release by its certificate, as YAML; else empty.

    What nobody has said, such as the use of the data, is "not stated" in it.
    """
    from stirred.spec.known_deployments.registry import details, to_registry

    plan = one.certificate.get("plan", {})
    try:
        if one.deployment is not None:
            known = record_of_deployment(one.deployment)
            return to_registry(one.specification, known, details(authors=[NOT_STATED]))
        if not one.certificate:
            return ""
        given = details(
            name=str(plan.get("dataset") or NOT_STATED),
            curators=[str(plan.get("released_by") or NOT_STATED)],
            use=NOT_STATED,
            region=NOT_STATED,
            date=str(one.certificate.get("released_on") or NOT_STATED),
            type="Dataset",
            authors=[NOT_STATED],
        )
        return to_registry(one.specification, record_of_certificate(one.certificate, one.specification), given)
    except errors.StirredError:
        return ""
