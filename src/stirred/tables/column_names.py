"""What columns are called like, for drafts of plans: who or where a record is. Names are looked at, and no cell."""

from __future__ import annotations

import re
from pathlib import Path

_IDENTIFYING = (
    (r"(^|_)(name|surname|address|street|phone|email|ssn|passport)(_|$)", "names a person or a dwelling"),
    (r"(^|_)(dob|date_of_birth|birth_?dat(e|um))(_|$)", "a date of birth nearly names a person; an age may do"),
    (
        r"(^|_)(lat|lon|lng|latitude|longitude|coords?|coordinates?|[xy]_?coord|easting|northing|gps)(_|$|\d)",
        "coordinates tell the place",
    ),
)
_IDENTIFIER = r"(^id$|_id$|^id_|serial|^hhid$|^hid$|^pid$|^(db|hb|rb|pb|rx|px)030$|^household$|^hh$|^hh_?n(o|r|um)$)"
"""030 is what ids are called in the files of EU-SILC."""
_UNITS = {
    "household": r"hou?sehold|(^|_)hh|^hid$|dwelling",
    "person": r"person|people|individual|^pid$",
    "business": r"business|firm|compan",
}


def identifying(column: str) -> str:
    """Why a column that is called so should not be released; empty for others.

    >>> identifying("home_address"), identifying("GPS_lat"), identifying("latest")
    ('names a person or a dwelling', 'coordinates tell the place', '')
    """
    return next((why for pattern, why in _IDENTIFYING if re.search(pattern, column.lower())), "")


def called_id(column: str) -> bool:
    """Whether a column is called like the id of records or rows.

    >>> called_id("household_id"), called_id("SERIALNO"), called_id("idle")
    (True, True, False)
    """
    return re.search(_IDENTIFIER, column.lower()) is not None


def dataset_called(path: Path) -> str:
    """A name for a dataset from that of a file, a folder or a pattern of files.

    >>> dataset_called(Path("in/households-2030.csv.gz")), dataset_called(Path("part-*.csv"))
    ('households-2030', 'part-')
    """
    return re.sub(r"[^\w-]+", " ", path.name.split(".")[0]).strip() or "data"


def unit_called(name: str) -> str:
    """What one row is, by what the file or its id is called; empty if that does not tell.

    >>> unit_called("persons_2030"), unit_called("hhid"), unit_called("nist_ma2019")
    ('person', 'household', '')
    """
    return next((unit for unit, pattern in _UNITS.items() if re.search(pattern, name.lower())), "")
