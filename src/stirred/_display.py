"""How objects show themselves in a notebook or a terminal: briefly, without addresses, and never a cell of the data.

:func:`brief` is for classes whose content may be seen: what is short is shown as it is, what is long is counted or
cut. :func:`withheld` is for classes that hold confidential data: they show what they are, and nothing that they hold.
:func:`confidential` makes such a class of fields alone. :func:`html_table` and :func:`html_page` are for what shows
itself in HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, TypeVar, dataclass_transform

WHOLE = 300
"""Characters up to which an object is shown in full, on one line."""

_FIELD = 84
_FEW = 8
_T = TypeVar("_T")


def brief(cls: type[_T]) -> type[_T]:
    """Give a dataclass a ``repr`` of at most one line for each field.

    >>> from dataclasses import dataclass
    >>> @brief
    ... @dataclass
    ... class Curve:
    ...     name: str
    ...     points: tuple[int, ...]
    >>> Curve("short", (1, 2))
    Curve(name='short', points=(1, 2))
    >>> Curve("long", tuple(range(1000)))
    Curve(name='long', points=<tuple of 1,000>)
    """
    cls.__repr__ = _brief  # type: ignore[method-assign]
    return cls


def withheld(cls: type[_T]) -> type[_T]:
    """Give a class a ``repr`` that tells its name only, since what it holds is confidential."""
    cls.__repr__ = _withheld  # type: ignore[method-assign]
    return cls


@dataclass_transform(frozen_default=True, eq_default=False)
def confidential(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass that equals itself only, and whose ``repr`` is withheld.

    >>> @confidential
    ... class Ages:
    ...     of: tuple[int, ...]
    >>> Ages((7, 31))
    <Ages: its content is confidential and not shown>
    """
    return withheld(dataclass(frozen=True, eq=False, repr=False)(cls))


def _withheld(self: object) -> str:
    return f"<{type(self).__name__}: its content is confidential and not shown>"


def _brief(self: Any) -> str:
    shown = [(one.name, getattr(self, one.name)) for one in fields(self) if one.repr and not one.name.startswith("_")]
    name = type(self).__name__
    whole = ", ".join(f"{field}={_short(value, WHOLE)}" for field, value in shown)
    if len(whole) <= WHOLE and "\n" not in whole:
        return f"{name}({whole})"
    parts = [f"{field}={_short(value, _FIELD)}" for field, value in shown if not _is_empty(value)]
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= WHOLE else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list | dict | frozenset) and not value)


def _short(value: Any, most: int) -> str:
    """One line about a value, of at most about ``most`` characters."""
    if hasattr(value, "dtype") and hasattr(value, "ndim") and value.ndim > 0:
        return _of_array(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"<{type(value).__name__} {value.__name__}>".replace("<lambda>", "without a name")
    if isinstance(value, tuple | list | dict | frozenset | set) and len(value) > most // 2:
        return _counted(value)
    text = repr(value)
    if " at 0x" in text:
        return _counted(value) if isinstance(value, tuple | list | dict) else f"<{type(value).__name__}>"
    if len(text) <= most and "\n" not in text:
        return text
    if isinstance(value, str):
        return repr(value[: most - 4].rstrip() + " ...")
    if isinstance(value, tuple | list | dict | frozenset | set):
        return _counted(value)
    named = getattr(value, "name", "")
    return f"<{type(value).__name__} {named!r}>" if isinstance(named, str) and named else f"<{type(value).__name__}>"


def _counted(value: Any) -> str:
    return f"<{type(value).__name__} of {len(value):,}>"


def _of_array(value: Any) -> str:
    if value.size <= _FEW:
        return " ".join(repr(value).split())
    shape = " x ".join(f"{length:,}" for length in value.shape)
    if value.dtype.kind not in "fiu":
        return f"<array of {shape}>"
    return f"<{shape} numbers from {value.min():.6g} to {value.max():.6g}>"


# -- tables and pages as HTML, for notebooks: plain, every text escaped, no script --------------------------------

_CELL = "text-align:left;vertical-align:top;padding:2px 10px;"
_MARKED = _CELL + "background:#fff3c4;"


def html_table(head: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]) -> str:
    """A table of texts; a row that is marked stands out."""
    titles = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in head)
    lines = [
        "<tr>" + "".join(f'<td style="{_MARKED if marked else _CELL}">{escape(cell)}</td>' for cell in cells) + "</tr>"
        for cells, marked in rows
    ]
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def html_page(title: str, body: str) -> str:
    """A complete HTML document that needs no other file."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f'<body style="font-family:sans-serif"><h1>{escape(title)}</h1>\n{body}\n</body></html>\n'
    )
