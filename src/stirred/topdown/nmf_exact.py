"""What is known exactly beside noisy measurements: statements in the files of constraints, and published totals.

The files state the number of housing units of every geounit, bounds on persons by kind of quarters (at least one
person for each facility, none where there is none), and combinations that do not occur. Totals of states are published
elsewhere. A statement that is not there for every finest geounit is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from stirred import errors
from stirred._received import plain
from stirred.margins.spine import Spine
from stirred.topdown.constraints import Counts
from stirred.topdown.nmf_form import EXACT, LevelFiles, Product
from stirred.topdown.nmf_rows import read_exact


@dataclass(frozen=True, eq=False, repr=False)
class ExactCounts:
    """What the files of constraints state about the finest geounits of a table, as far as it is known."""

    total: Counts | None = None
    facilities: Counts | None = None
    """Of each kind that is not a household, how many facilities there are."""
    homes: Counts | None = None
    """1 where a household can live, and 0 elsewhere."""
    zeros: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Combinations of values that do not occur."""

    def __repr__(self) -> str:
        known = [name for name in ("total", "facilities", "homes") if getattr(self, name) is not None]
        return f"<ExactCounts: {', '.join(known) or 'nothing'}>"


def read_exact_counts(product: Product, level: LevelFiles, spine: Spine) -> ExactCounts:
    """Read what the files of constraints state about the finest geounits."""
    wanted = dict.fromkeys((name for name, _ in product.zeros), 1)
    lower, upper = "", ""
    if product.total:
        wanted[f"total{EXACT}"] = 1
    if product.bounds:
        attribute, _ = product.bounds
        lower, upper = (f"{attribute}_total_{end}{EXACT}" for end in ("lb", "ub"))
        wanted |= dict.fromkeys((lower, upper), len(product.schema.values(attribute)))
    found: dict[str, Counts] = {}
    times: dict[str, Counts] = {}
    for _, path in level.constraints:
        for name, (codes, values) in read_exact(path, wanted).items():
            place = pc.index_in(codes, spine.names[-1])
            inside = pc.is_valid(place)
            units = place.filter(inside).to_numpy(zero_copy_only=False).astype(np.int64)
            found.setdefault(name, np.zeros((spine.leaves, wanted[name]), dtype=np.int64))
            found[name][units] = values[inside.to_numpy(zero_copy_only=False)]
            times.setdefault(name, np.zeros(spine.leaves, dtype=np.int64))
            times[name] += np.bincount(units, minlength=spine.leaves)
    whole = {name: values for name, values in found.items() if (times[name] == 1).all() and (values >= 0).all()}
    zeros = tuple(
        {attribute: (value,) for attribute, value in together}
        for name, together in product.zeros
        if name in whole and not whole[name].any()
    )
    facilities = homes = None
    if product.bounds and lower in whole and upper in whole:
        attribute, household = product.bounds
        kinds = product.schema.values(attribute)
        others = [at for at, kind in enumerate(kinds) if kind != household]
        homes = (whole[upper][:, [kinds.index(household)]] > 0).astype(np.int64)
        if np.array_equal(whole[lower][:, others] > 0, whole[upper][:, others] > 0):
            facilities = whole[lower][:, others]
    return ExactCounts(whole.get(f"total{EXACT}"), facilities, homes, zeros)


def read_totals(path: Path, spine: Spine) -> Counts:
    """Published totals of states, for the units of the level of states; each state must be one unit there."""
    try:
        read = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"state": pa.string()}))
        codes = [str(code).strip().zfill(2) for code in read["state"].to_pylist()]
        numbers = [int(number) for number in read["total"].to_pylist()]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise errors.noisy_question(
            f"The totals in {path}", "must be in a CSV file with the columns state (two digits) and total"
        ) from None
    if "state" not in spine.levels:
        raise errors.noisy_question("Totals of states", "can be used only if the level of states is read")
    known = dict(zip(codes, numbers, strict=True))
    states = [name[1:] for name in spine.names[spine.levels.index("state")].to_pylist()]
    if twice := [one for one in states if states.count(one) > 1]:
        raise errors.noisy_question(
            f"The state '{twice[0]}'",
            "has two parts, and its total is that of both; totals can be used for states with one part only",
        )
    if lacking := [one for one in states if one not in known]:
        raise errors.noisy_question(f"The totals in {path}", f"must have a row for the state '{plain(lacking[0])}'")
    return np.array([[known[one]] for one in states], dtype=np.int64)
