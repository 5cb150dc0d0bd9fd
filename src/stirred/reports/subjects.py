"""What a report is about: a release, a plan, a known deployment, or a guarantee by itself, with its explanation.

Keep in mind: a plan's data are never read here. A folder is taken as it is, and the report says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors, mechanisms
from stirred._received import is_file, plain
from stirred._shown import brief
from stirred.reports.context_section import of_opened
from stirred.semantics import Explanation
from stirred.spec import Specification
from stirred.verbs import CERTIFICATE, explain, explain_release, mechanism_of_plan, of_release

if TYPE_CHECKING:
    from stirred.releases.context import Context
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.mechanism import AnalystNote, Mechanism
    from stirred.releases.plans import Plan
    from stirred.spec.known_deployments.deployments import Deployment

MOST_ROWS = 1_000_000
"""Rows of a release up to which pairs of its records are looked at: a report must not take longer than a release."""
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
        return of_folder(*of_release(what), explanation, context)
    explained = explanation or explain(what)
    if isinstance(what, Specification):
        return Subject(_name(what, "this guarantee"), explained, context)
    name = _name(explained.specification, Path(what).name or str(what))
    return Subject(name, explained, context, deployment=_deployment(what))


def of_folder(
    mechanism: Mechanism,
    release: ReleaseFolder,
    explanation: Explanation | None = None,
    context: Context | None = None,
) -> Subject:
    """A release as the subject of a report; from its public files alone, also while it is being written."""
    explained = explanation or explain_release(mechanism, release, MOST_ROWS)
    folder = release.path.resolve().name or "."
    name = _name(explained.specification, folder)
    return Subject(name, explained, context or of_opened(release), release, mechanism, folder=folder)


def _planned(what: Plan | str | Path, options: Mapping[str, Any]) -> Subject:
    if isinstance(what, str | Path):
        mechanism = mechanism_of_plan(what)
        plan, name = mechanism.read_plan(what), Path(what).name
    else:
        mechanism, plan, name = mechanisms.named(what.mechanism), what, "this plan"
    known = {option.keyword for option in mechanism.options.get("report", ())}
    for keyword in options:
        if keyword not in known:
            raise errors.report_option(_option(keyword), f"is not for plans of the {mechanism.title}")
    explained = explain(mechanism.specify_plan(plan, **options))
    return Subject(_name(explained.specification, name), explained, plan.context, None, mechanism, plan)


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
