"""Generate the census of a small island country: five levels of places, persons, dwellings and institutions.

    python make.py FOLDER

writes areas.csv, persons.csv, dwellings.csv and institutions.csv, and a copy of plan.toml, into FOLDER. Then

    stirred check FOLDER/plan.toml
    stirred release FOLDER/plan.toml --out released
    stirred estimate released --table persons --level parish --by speaks

Everything is invented.
"""

from __future__ import annotations

import csv
import random  # noqa: TID251 # the data are made; no mechanism draws from this
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

LEVELS = ("island", "province", "district", "parish", "area")
CHILDREN = (2, 2, 2, 2, 4)
LANGUAGES = {
    "creole": 30,
    "french": 8,
    "english": 6,
    "creole and french": 30,
    "creole and english": 16,
    "all three": 10,
}


def main(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = random.Random(2_030)
    areas = list(places(()))
    write(folder / "areas.csv", LEVELS, areas)
    persons, dwellings, institutions = [], [], []
    for *_, area in areas:
        empty = drawn.random() < 0.1
        homes = 0 if empty else 1 + int(drawn.expovariate(1 / 14))
        for _ in range(homes):
            lived_in = drawn.random() < 0.85
            water = drawn.choices(["piped", "well", "none"], [70, 25, 5])[0]
            dwellings.append((area, "yes" if lived_in else "no", water))
            language = speech(drawn)
            for _ in range(drawn.choices([1, 2, 3, 4, 5, 6], [20, 25, 20, 20, 10, 5])[0] if lived_in else 0):
                age = drawn.choices(["0-14", "15-64", "65+"], [28, 62, 10])[0]
                own = language if drawn.random() < 0.8 else speech(drawn)
                persons.append((area, "household", age, drawn.choice("fm"), own))
        if drawn.random() < 0.05:
            institutions.append((area, "institution"))
            for _ in range(1 + int(drawn.expovariate(1 / 20))):
                age = drawn.choices(["15-64", "65+"], [30, 70])[0]
                persons.append((area, "institution", age, drawn.choice("fm"), speech(drawn)))
    write(folder / "persons.csv", ("area", "kind", "age", "sex", "language"), persons)
    write(folder / "dwellings.csv", ("area", "occupied", "water"), dwellings)
    write(folder / "institutions.csv", ("area", "type"), institutions)
    shutil.copyfile(Path(__file__).with_name("plan.toml"), folder / "plan.toml")
    print(f"{len(areas)} areas, {len(persons)} persons, {len(dwellings)} dwellings, {len(institutions)} institutions")


def places(above: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Every area with the units that it lies in; the code of a unit begins with that of the unit above."""
    if len(above) == len(LEVELS):
        yield above
        return
    for number in range(1, CHILDREN[len(above)] + 1):
        yield from places((*above, (above[-1] + "." if above else "") + str(number)))


def speech(drawn: random.Random) -> str:
    """The languages that somebody speaks."""
    return drawn.choices(list(LANGUAGES), list(LANGUAGES.values()))[0]


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(header)
        lines.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "country"))
