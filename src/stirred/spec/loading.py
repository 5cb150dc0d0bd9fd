"""A specification from what a person types: a name, a path, or the blocks themselves in short.

A known deployment's name comes first; a folder of the same name is ``./name``.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from pathlib import Path

from stirred import _bounded_reading, errors
from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import flavors
from stirred.spec.exact import DECIMAL_COMMA, exact
from stirred.spec.known_deployments import names
from stirred.spec.specification import Flavor, Specification, from_fields

FILE = "specification.json"
"""The specification in a release folder."""

_FLAGS = {
    "bounded": ("bounded", True),
    "unbounded": ("bounded", False),
    "ordered": ("ordered", True),
    "unordered": ("ordered", False),
}
_KEYS = ("rho", "epsilon", "delta", "alpha", "mu", "unit")
_SYNONYMS = {
    "eps": "epsilon",
    "ε": "epsilon",
    "ϵ": "epsilon",
    "ρ": "rho",
    "δ": "delta",
    "α": "alpha",
    "order": "alpha",
    "μ": "mu",
    "units": "unit",
}
_NEXT = re.compile(r"(?<=[^\s,;])\s+(?=[^\s=,;]+\s*=|(?:un)?bounded\b|(?:un)?ordered\b)", re.IGNORECASE)
"""Where a space separates two blocks that should have a comma between them."""
_COMPARED = re.compile("[<>]=?|==|[≤≥]")
_NUMBER = re.compile(r"[\d.]+(?:[,/]\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)


def load(text: str | Path) -> Specification:
    """The specification that a text names.

    Accepted are a known deployment, the path of a specification.json, of a release folder or of a registry record
    (``.yaml``), and blocks typed by hand.

    >>> load("topdown-2020-pl").budget.shown()
    '2.63'
    >>> load("epsilon=1,delta=1e-6,unit=household,unbounded").output_premetric.symbol
    'D_Mult^delta with delta = 0.000001'
    """
    if not isinstance(text, str | Path):
        raise errors.wrong_argument(
            "A name or path of a specification", text, "a deployment's name, a path, or blocks such as 'rho=2.63'"
        )
    typed = str(text).strip()
    if isinstance(text, str) and (found := names.exactly(typed)):
        return _deployed(found)
    path = Path(typed)
    try:
        if typed and path.is_dir():
            return _named(_from_json(path / FILE), path)
        if path.is_file():
            if path.suffix.lower() in (".yaml", ".yml"):
                from stirred.spec.known_deployments.registry import from_registry

                return from_registry(path).specification
            if path.suffix.lower() == ".toml" and _is_plan(path):
                raise errors.not_a_specification("it is a plan", plan=path)
            return _named(_from_json(path), path)
    except (OSError, ValueError):  # a text that no path can be
        pass
    if isinstance(text, Path):
        raise errors.nothing_to_load(typed, ())
    if "=" in typed or _COMPARED.search(typed):
        return _typed(typed)
    if found := names.meant(typed):
        return _deployed(found)
    if _NUMBER.fullmatch(typed):
        if DECIMAL_COMMA.fullmatch(typed):
            raise errors.decimal_comma("A budget", typed)
        raise errors.SpecificationError(
            "number-alone",
            f"'{typed}' is a number, and does not say of which budget.",
            f"Say which budget it is: 'rho={typed}', 'epsilon={typed}' or 'epsilon={typed},delta=1e-6'.",
        )
    if several := names.variants(typed):
        raise errors.SpecificationError(
            "several-deployments",
            f"'{typed}' is the beginning of {len(several)} names of deployments.",
            f"Choose one: {errors.listed(several, 'or')}; 'stirred deployments' says what each is.",
        )
    raise errors.nothing_to_load(typed, names.close(typed))


def _deployed(name: str) -> Specification:
    from stirred.spec.known_deployments.deployments import deployment

    return deployment(name).specification


def _named(specification: Specification, path: Path) -> Specification:
    """The same, called after its file or folder where it has no name of its own."""
    name = path.resolve().parent.name if path.name == FILE else path.resolve().name
    return specification if specification.name else replace(specification, name=name)


def _is_plan(path: Path) -> bool:
    """Whether a TOML file names a mechanism, as plans do."""
    try:
        return "mechanism" in _bounded_reading.read_toml(path)
    except (_bounded_reading.Unacceptable, OSError, ValueError):
        return False


def _from_json(path: Path) -> Specification:
    """From a specification.json, or from a certificate that repeats it."""
    try:
        text = _bounded_reading.read_text(path)
        fields = _bounded_reading.parse_json(text)
    except _bounded_reading.Unacceptable as problem:
        raise errors.not_a_specification(str(problem)) from None
    except OSError:
        raise errors.not_a_specification(f"there is no readable {path}") from None
    if isinstance(fields, dict) and "stirred_certificate" in fields and isinstance(fields.get("specification"), dict):
        return from_fields(fields["specification"])
    return Specification.from_json(text)


def _typed(text: str) -> Specification:
    """Blocks in short: ``rho=2.63,unit=household,unbounded``."""
    if compared := _COMPARED.search(text):
        raise errors.bad_shorthand(text, f"it has {compared[0]} where = stands; a budget is an upper bound already")
    numbers: dict[str, str] = {}
    flags: dict[str, bool] = {}
    last = ""
    for part in (piece.strip() for piece in re.split("[,;]", _NEXT.sub(",", text))):
        written, equals, value = (piece.strip() for piece in part.partition("="))
        key = _SYNONYMS.get(written.lower(), written.lower())
        if not equals and key in _FLAGS:
            block, wanted = _FLAGS[key]
            if block in flags:
                raise errors.bad_shorthand(text, f"'{key}' is said twice, or against another word")
            flags[block] = wanted
        elif not equals and DECIMAL_COMMA.fullmatch(f"{last},{part}"):
            raise errors.decimal_comma("A number", f"{last},{part}")
        elif not equals or key not in _KEYS or not value:
            raise errors.bad_shorthand(text, f"'{part}' is none of its parts{_nearest(key)}")
        elif key in numbers:
            raise errors.bad_shorthand(text, f"'{key}' is said twice")
        else:
            numbers[key] = value
        last = value
    unit = numbers.pop("unit", "person")
    flavor, budget = _flavor(text, numbers, unit, flags)
    return flavor.at(budget, name=text)


def _flavor(
    text: str, numbers: dict[str, str], unit: str, flags: dict[str, bool]
) -> tuple[Flavor, str | GaussianCurve]:
    match sorted(numbers):
        case ["rho"]:
            return flavors.zcdp(unit, **flags), numbers["rho"]
        case ["epsilon"]:
            return flavors.pure(unit, **flags), numbers["epsilon"]
        case ["delta", "epsilon"]:
            return flavors.approximate(numbers["delta"], unit, **flags), numbers["epsilon"]
        case ["alpha", "epsilon"]:
            return flavors.renyi(numbers["alpha"], unit, **flags), numbers["epsilon"]
        case ["mu"]:
            return flavors.trade_off(unit, **flags), GaussianCurve(_double(numbers["mu"]))
    said = errors.listed(sorted(numbers)) if numbers else "no budget"
    raise errors.bad_shorthand(text, f"no flavor has {said} for its numbers")


def _nearest(key: str) -> str:
    """Words about the parts that look like this one, if there are any, and it is not one of them."""
    parts = [*_KEYS, *_FLAGS]
    close = [] if key in parts else difflib.get_close_matches(key, parts, n=1, cutoff=0.7)
    return f" (is '{close[0]}' meant?)" if close else ""


def _double(text: str) -> float:
    try:
        return float(exact(text, "mu"))
    except OverflowError:
        raise errors.bad_number("mu", text) from None
