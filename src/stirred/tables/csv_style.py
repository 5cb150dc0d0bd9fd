"""How a CSV file is written: what separates its fields, what stands for a missing cell, which decimal sign it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stirred._bounded_reading import has_controls

DELIMITERS = (",", ";", "\t", "|")
"""What separates fields in practice; other signs have to be named."""

TAB = "tab"
"""How a tab is written where control characters are not allowed, as in a plan."""


@dataclass(frozen=True)
class CsvStyle:
    """The form of a CSV file.

    >>> CsvStyle(";", "NA", ",").words
    "fields separated by ';', missing cells written as 'NA', decimal comma"
    """

    delimiter: str = ","
    null: str = ""
    """The text of a missing cell."""
    decimal: str = "."

    @property
    def words(self) -> str:
        """The form in words, as far as it is not the usual one."""
        parts = []
        if self.delimiter != ",":
            parts.append(f"fields separated by {'tabs' if self.delimiter == chr(9) else repr(self.delimiter)}")
        if self.null:
            parts.append(f"missing cells written as '{self.null}'")
        if self.decimal == ",":
            parts.append("decimal comma")
        return ", ".join(parts)

    def to_fields(self) -> dict[str, str]:
        """The form as a data dictionary states it."""
        return asdict(self) | {"delimiter": TAB if self.delimiter == "\t" else self.delimiter}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any] | None) -> CsvStyle:
        """The form that a data dictionary states; without one, the usual. ``ValueError`` if it is none."""
        if fields is None:
            return USUAL
        if not isinstance(fields, Mapping) or set(fields) != {"delimiter", "null", "decimal"}:
            raise ValueError("the form of a CSV file has a delimiter, a null and a decimal sign")
        style = cls(sign_of(fields["delimiter"]), fields["null"], fields["decimal"])
        if not (
            is_delimiter(style.delimiter)
            and isinstance(style.null, str)
            and style.decimal in (".", ",")
            and (style.null == "" or can_be_null(style.null, style.delimiter))
        ):
            raise ValueError("a CSV file cannot have this form")
        return style


USUAL = CsvStyle()


def sign_of(written: Any) -> Any:
    """The delimiter that a plan names; a tab is written as a word."""
    return "\t" if written == TAB else written


def is_delimiter(text: object) -> bool:
    """Whether fields can be separated by it: one plain character that is no quotation mark and no line end."""
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in '"\r\n\0'


def can_be_null(marker: str, delimiter: str) -> bool:
    """Whether a text can be written without quotation marks as a missing cell."""
    return 0 < len(marker) <= 100 and not has_controls(marker) and not set(marker) & {delimiter, '"'}


def likely_delimiter(names: list[str], used: str) -> str | None:
    """What separates the fields of a file that was read as one column, if its name tells.

    >>> likely_delimiter(["a;b;c"], ","), likely_delimiter(["a", "b;c"], ",")
    (';', None)
    """
    if len(names) != 1:
        return None
    counts = {sign: names[0].count(sign) for sign in DELIMITERS if sign != used and sign in names[0]}
    return max(counts, key=lambda sign: counts[sign]) if counts else None
