"""``stirred --version``: this version, and those of Python, of the libraries, and of the forms of files and JSON.

Versions of libraries are read from what is installed, without importing the libraries.
"""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import stirred

FORM = 1


def bill_of_materials() -> dict[str, Any]:
    """Versions by name: of Python, of each required library, and of each form of file that is written and read."""
    from stirred.lab.study import study_file
    from stirred.releases import plans
    from stirred.releases.folder import documents, manifest
    from stirred.releases.folder import documents as texts
    from stirred.releases.ledger import rows
    from stirred.semantics import explaining, targets
    from stirred.spec import specification

    return {
        "stirred_version": FORM,
        "stirred": stirred.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "libraries": {name: _version(name) for name in _required()},
        "formats": {
            "plan": plans.FORM,
            "specification": specification.FORMAT_VERSION,
            "certificate": documents.FORM,
            "manifest": manifest.FORM,
            "ledger": rows.FORM,
            "check": texts.CHECK_FORM,
            "explanation": explaining.FORMAT_VERSION,
            "calibration": targets.FORM,
            "study": study_file.FORM,
        },
    }


def bill_text(bill: dict[str, Any]) -> str:
    """The bill of materials as text; its first line is the version alone."""
    installed = "\n".join(f"  {name:20}{number or 'not installed'}" for name, number in bill["libraries"].items())
    formats = "\n".join(f"  {name:20}{number}" for name, number in bill["formats"].items())
    return (
        f"{bill['stirred']}\nPython {bill['python']} on {bill['platform']}\nlibraries:\n{installed}\n"
        f"versions of the forms in which files and JSON are written:\n{formats}"
    )


def _required() -> list[str]:
    """The names of the libraries that the installed package requires, without its extras."""
    try:
        lines = requires("stirred") or ()
    except PackageNotFoundError:  # run from its source, without being installed
        return []
    return [re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
