"""What is said beside the code agrees with it: versions, paths, dependencies, links."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import yaml

import stirred

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {"yaml": "pyyaml", "vl_convert": "vl-convert-python", "tomli_w": "tomli-w"}
"""Distributions that are not called like the module that is imported."""
TOP = {"pyproject.toml", "setup.py", "CHANGELOG.md"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_is_stated_everywhere():
    citation = yaml.safe_load(text("CITATION.cff"))
    newest = re.search(r"^## (\S+)(?: - \S+)?$", text("CHANGELOG.md"), flags=re.M)
    released = re.search(r"^## (\S+) - (\S+)$", text("CHANGELOG.md"), flags=re.M)
    assert {PROJECT["version"], newest.group(1)} == {stirred.__version__}
    assert (citation["version"], str(citation["date-released"])) == released.groups()  # cited is what was released
    assert newest.group(1) == released.group(1) or ".dev" in newest.group(1)
    assert citation["license"] == PROJECT["license"]


def test_every_library_that_the_package_imports_is_declared():
    imported = set()
    for path in (ROOT / "src" / "stirred").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            imported |= {name.partition(".")[0] for name in names}
    wanted = {DISTRIBUTIONS.get(name, name) for name in imported - {*sys.stdlib_module_names, "stirred"}}
    extras = PROJECT["optional-dependencies"]
    declared = [*PROJECT["dependencies"], *extras["stata-sas-spss"], *extras["postgresql"]]
    assert wanted <= {re.match(r"[\w-]+", one).group().lower() for one in declared}


def test_paths_that_contributors_are_sent_to_exist():
    words = re.findall(r"`([\w./-]+)`", text("CONTRIBUTING.md"))
    paths = [word for word in words if re.match(r"(src|tests|docs|benchmarks|examples|\.ci)/", word) or word in TOP]
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists() and "KIND--" not in path] == []
    modules = {
        path.name for folder in ("src", "tests", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    }
    assert [
        word for word in words if word.endswith(".py") and word.rpartition("/")[2] not in {*modules, "setup.py"}
    ] == []


def test_paths_that_the_page_on_the_architecture_names_exist():
    """Where would I change something? A page that sends people nowhere is worse than none."""
    words = re.findall(r"`([\w./-]+)`", text("docs/architecture.md"))
    paths = [word for word in words if "/" in word]
    assert len(paths) > 40
    roots = (ROOT, ROOT / "src" / "stirred")
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_the_picture_of_rooms_is_that_of_the_contracts():
    spec = importlib.util.spec_from_file_location("rooms_picture", ROOT / "scripts" / "rooms_picture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PICTURE.read_text(encoding="utf-8") == script.picture(), "run python scripts/rooms_picture.py"


def test_links_between_the_files_at_the_top_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", text(name)):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def test_the_way_to_report_a_fault_names_nobody():
    assert "private vulnerability reporting" in text("SECURITY.md") and "@" not in text("SECURITY.md")
