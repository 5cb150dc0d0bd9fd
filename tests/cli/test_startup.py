"""What commands that compute little do not import, and the names of packages that are imported on demand."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import stirred

SOURCE = Path(stirred.__file__).parent
DATA = {"polars", "pyarrow", "pandas", "narwhals", "altair", "yaml", "pyreadstat"}
COMPILER = {"numba", "llvmlite"}
LAZY = [path for path in sorted(SOURCE.rglob("__init__.py")) if "if TYPE_CHECKING:" in path.read_text(encoding="utf-8")]


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).parent.parts)


def imported(code: str, *words: str) -> set[str]:
    """The top-level packages that are there after ``code`` ran in a process of its own."""
    ending = "\nimport sys; print('\\n' + ' '.join({name.partition('.')[0] for name in sys.modules}))"
    ran = subprocess.run(
        [sys.executable, "-c", code + ending, *words], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (("--help",), {"numpy", "scipy", *DATA, *COMPILER}),
        (("deployments",), {"numpy", "scipy", *DATA, *COMPILER}),
        (("context", "open-data"), {"numpy", "scipy", *DATA, *COMPILER}),
        (("compare", "das-2020-overall", "psa-2020-county-tract-p05"), {*DATA, *COMPILER}),
        (("lint", "das-2020"), {"scipy", *DATA, *COMPILER}),
        (("limits", "--epsilon", "1", "--records", "1000"), {"scipy", *DATA, *COMPILER}),
        (("explain", "rho=2.63"), {*DATA, *COMPILER}),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_a_light_command_imports_no_library_that_it_does_not_need(words, heavy):
    run = "from stirred.cli.app import main\ntry:\n    main()\nexcept SystemExit as ending:\n    assert not ending.code"
    assert imported(run, *words) & heavy == set()


def test_a_release_without_a_report_loads_nothing_that_writes_one(tmp_path):
    code = f"""
import sys, polars, stirred
rows = polars.DataFrame({{"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4}})
plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
stirred.release(plan, rows, out={str(tmp_path / "release")!r}, report=False)
assert "stirred.releases.steps" in sys.modules
assert not [name for name in sys.modules if name.startswith(("stirred.reports", "stirred.semantics"))]
"""
    imported(code)


@pytest.mark.parametrize("package", [_dotted(path) for path in LAZY])
def test_importing_a_package_imports_no_large_library(package):
    assert imported(f"import {package}") & {"numpy", "scipy", "pydantic", *DATA, *COMPILER} == set()


@pytest.mark.parametrize("name", ["swap", "topdown", "survey"])
def test_knowing_a_mechanism_imports_no_large_library(name):
    """Every command asks every mechanism for its options and verbs."""
    code = f"from stirred import mechanisms; found = mechanisms.named({name!r}); found.options, found.verbs"
    assert imported(code) & {"numpy", "scipy", "pydantic", *DATA, *COMPILER} == set()


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_names_on_demand_are_those_that_type_checkers_see(path):
    package = importlib.import_module(_dotted(path))
    (guarded,) = (node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    seen = {}
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        seen |= {alias.name: node.module for alias in node.names}
    assert set(seen) == set(package.__all__)
    for name, module in seen.items():
        found = importlib.import_module(f"{module}.{name}" if module == package.__name__ else module)
        assert getattr(package, name) is (found if module == package.__name__ else getattr(found, name))
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_few_numbers_are_computed_without_the_compiler_and_come_out_the_same():
    code = """
import numpy, sys
from stirred.loss.curves.tradeoffs import ZcdpCurve
levels = [0, 1e-300, 1e-9, 0.01, 0.05, 0.3, 0.5, 0.9, 0.999, 1]
def powers():
    curves = [ZcdpCurve(rho) for rho in (1e-4, 0.1, 2.63, 55.371)]
    return numpy.array([part for curve in curves for part in (curve.power(levels), curve.type_two_error(levels))])
plain = powers()
assert "numba" not in sys.modules
import numba
numpy.testing.assert_allclose(plain, powers(), rtol=1e-13)
"""
    imported(code)


def test_what_plain_python_refuses_is_left_to_the_compiler():
    code = """
import math, numpy, sys
from stirred._compiled import kernel, small
@kernel
def exponentials(values, results):
    for i in range(len(values)):
        results[i] = math.exp(values[i])
results = numpy.empty(2)
small(exponentials, numpy.array([0.0, 1.0]), results)
assert results.tolist() == [1.0, math.e] and "numba" not in sys.modules
small(exponentials, numpy.array([0.0, 1000.0]), results)
assert results.tolist() == [1.0, math.inf] and "numba" in sys.modules
"""
    imported(code)
