"""What is asked of texts that somebody else wrote: no hidden characters, no smaller budget, nothing that runs or loads.

The sentences of another version cannot be compared with ours, and ``verify`` says so. Whatever the version, though, a
text has no characters that nobody sees, and it does not state a smaller budget than the guarantee has: every number
beside the words epsilon, rho and delta must be one that our own text about the same release has there too, or larger.

A report shows words and drawings. It has no script, ever, whichever version is said to have written it; so this is
asked of every report, also of one that cannot be compared. A page is not searched for what is bad: it must be made of
elements and attributes that are known to do nothing, each written so that no browser can read it in a second way (names
and values in full, double quotes, no comments, no character that is not seen).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from html import unescape

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""Control characters but for line ends and tabulators, and marks that change the direction of text."""
_NAMES = {"epsilon": "epsilon", "ε": "epsilon", "rho": "rho", "ρ": "rho", "delta": "delta", "δ": "delta"}
_STATED = re.compile(
    r"(?<!\w)(epsilon|rho|delta|ε|ρ|δ)"
    r"(?:[\s=:<>≤≥≈~(]|\b(?:is|was|of|at|most|least|about|only|below|under|less|than|just|equals?|to|nearly)\b)+"
    r"([0-9]+(?:[.,][0-9]+)*(?:/[0-9]+|e-?[0-9]{1,3})?)",
    re.IGNORECASE,
)
_ROUNDED = Fraction(1, 100)
"""By how much versions may round a number otherwise, relative to it."""


def stated_budgets(text: str) -> dict[str, list[Fraction]]:
    """The numbers that a text has beside the words epsilon, rho and delta.

    >>> stated_budgets("Epsilon = 4.60 here, and rho is at most 3/4.")
    {'epsilon': [Fraction(23, 5)], 'rho': [Fraction(3, 4)]}
    """
    found: dict[str, list[Fraction]] = {}
    for name, number in _STATED.findall(text):
        try:
            found.setdefault(_NAMES[name.lower()], []).append(Fraction(number.replace(",", "")))
        except (ValueError, ZeroDivisionError):
            found.setdefault(_NAMES[name.lower()], []).append(Fraction(-1))
    return found


def understates(text: str, own: Iterable[str]) -> bool:
    """Whether a text states a smaller epsilon, rho or delta than our own texts about the same release do."""
    known: dict[str, list[Fraction]] = {}
    for one in own:
        for name, numbers in stated_budgets(one).items():
            known.setdefault(name, []).extend(numbers)
    return any(
        number < max(known[name]) and not any(abs(number - one) <= _ROUNDED * one for one in known[name])
        for name, numbers in stated_budgets(text).items()
        if name in known
        for number in numbers
    )


_DOCTYPE = "<!doctype html>\n"
_STYLE = re.compile(r"<style>([^<]*)</style>")
_CSS = re.compile(r"\\|@(?!media\b|page\b)|url|image|src|expression|behavior|binding|element\(|paint\(", re.IGNORECASE)
_TAG = re.compile(r'<(/)?([a-zA-Z][a-zA-Z0-9]*)((?: [a-zA-Z][a-zA-Z0-9-]*="[^"<>]*")*)(?(1)| ?/?)>')
_ATTRIBUTE = re.compile(r'([a-zA-Z][a-zA-Z0-9-]*)="([^"]*)"')
_OWN = re.compile(r"url\(#[A-Za-z0-9_-]+\)")
_WORDS = {"title", "content", "class", "font-family"}
"""Attributes whose text may have any character; besides those for reading aloud."""

_ELEMENTS = frozenset(
    re.findall(
        r"\w+",
        """html head meta title body main section article header footer nav aside h1 h2 h3 h4 h5 h6 p div span a b
        strong i em u s small sub sup q cite abbr dfn var kbd samp code pre mark br hr wbr blockquote ul ol li dl dt dd
        table caption colgroup col thead tbody tfoot tr th td figure figcaption details summary
        svg g path rect line circle ellipse polyline polygon text tspan desc defs clipPath""",
    )
)
_ATTRIBUTES = frozenset(
    re.findall(
        r"[\w-]+",
        """lang dir id class title role tabindex scope colspan rowspan headers open href charset content name http-equiv
        xmlns viewBox width height x y x1 x2 y1 y2 dx dy cx cy r rx ry d points transform fill stroke opacity display
        visibility overflow clip-path clip-rule pointer-events text-anchor dominant-baseline""",
    )
)
_FAMILIES = ("aria-", "fill-", "stroke-", "font-")
_METAS = (
    {"charset": "utf-8"},
    {"name": "viewport", "content": None},
    {"name": "color-scheme", "content": None},
    {"name": "description", "content": None},
)


def active_content(page: str) -> str | None:
    """What in a page may run, load or lead elsewhere, in a word or two; None if there is nothing.

    >>> head = '<meta http-equiv="Content-Security-Policy" content="default-src \\'none\\'">'
    >>> active_content(f"<!doctype html>\\n{head}<p>words</p>")
    >>> active_content(f"<!doctype html>\\n{head}<p onclick=\\"alert(1)\\">words</p>")
    'the attribute onclick of p'
    """
    if UNSEEN.search(page):
        return "a control character"
    if not page.startswith(_DOCTYPE):
        return "no doctype of HTML at its beginning"
    styles, rest = _STYLE.findall(page), _STYLE.sub("", page.removeprefix(_DOCTYPE))
    if any(_CSS.search(text) for text in styles):
        return "styles that load something"
    tags = list(_TAG.finditer(rest))
    if "<" in _TAG.sub("", rest):
        at = _TAG.sub("", rest).index("<")
        return f"what is no element of a report: {_TAG.sub('', rest)[at : at + 20]}"
    for _, name, written in (match.group(1, 2, 3) for match in tags):
        if name not in _ELEMENTS:
            return f"the element {name}"
        stated = [(one, unescape(value)) for one, value in _ATTRIBUTE.findall(written)]
        if len(dict(stated)) < len(stated):
            return f"an attribute twice of {name}"
        if name == "meta":
            if not _is_known_meta(dict(stated)):
                return "an element meta that a report does not have"
        elif strange := next((one for one, value in stated if not _is_still(one, value)), None):
            return f"the attribute {strange} of {name}"
    if "<meta http-equiv" not in rest.partition("<body")[0]:
        return "no policy that keeps a browser from loading anything"
    return None


def _is_still(name: str, value: str) -> bool:
    """Whether an attribute does nothing but say how its element looks or is called."""
    if name not in _ATTRIBUTES and not name.startswith(_FAMILIES):
        return False
    if name == "href":
        return bool(re.fullmatch(r"#[A-Za-z0-9_.-]*", value))
    if name == "xmlns":
        return value == "http://www.w3.org/2000/svg"
    if name in _WORDS or name.startswith("aria-"):
        return True
    return "\\" not in value and ("(" not in value or name == "transform" or bool(_OWN.fullmatch(value)))


def _is_known_meta(stated: dict[str, str]) -> bool:
    """Whether an element meta is one of ours; a policy must forbid everything but styles in the page."""
    if set(stated) == {"http-equiv", "content"}:
        rules = [rule.split() for rule in stated["content"].split(";")]
        loads = [rule for rule in rules if rule and rule[0] != "style-src" and rule[1:] != ["'none'"]]
        return stated["http-equiv"] == "Content-Security-Policy" and ["default-src", "'none'"] in rules and not loads
    return any(
        set(stated) == set(known) and all(value in (None, stated[name]) for name, value in known.items())
        for known in _METAS
    )
