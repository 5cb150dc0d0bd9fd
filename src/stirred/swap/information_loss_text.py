"""Information loss in words, for the text of a check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stirred.releases.folder.documents import fill, named_rows
from stirred.swap.information_loss import DISTANCES, LossBy

_NAMES = {"absolute": "absolute", "relative": "relative", "root": "square roots"}
_SHOWN_PLACES = 5


def loss_text(found: Sequence[LossBy]) -> str:
    """The expected information loss of a table as a few lines."""
    whole = found[0].fields(0)
    rows = [
        (
            _NAMES[name],
            f"mean {_number(whole[f'{name}_mean'])}, median {_number(whole[f'{name}_50%'])}, "
            f"90% of cells up to {_number(whole[f'{name}_90%'])}, largest {_number(whole[f'{name}_100%'])}",
        )
        for name in DISTANCES
        if whole[f"{name}_mean"] is not None
    ]
    if whole["false_zeros"] is None:
        rows.append(("zeros", "not forecast"))
    else:
        rows.append(("false zeros", f"{_number(whole['false_zeros'])} of {whole['cells']:,.0f} cells"))
        inside = f"with {_number(whole['in_false_nonzeros'])} in them together"
        rows.append(("false non-zeros", f"{_number(whole['false_nonzeros'])} cells that are zero now, {inside}"))
    head = fill(
        "Expected information loss: distances between true and released cells, over cells that are not zero now. All "
        "are approximations, and quantiles are of what is expected of each cell. The mean relative distance is an "
        "expected MAPE that also holds for cells that seldom change.",
        "  ",
    )
    return "\n".join([head, named_rows(rows), *(fill(_places(one), "  ") for one in found[1:])])


def _places(found: LossBy) -> str:
    means = found.measures["relative_mean"]
    known = np.flatnonzero(~np.isnan(means))
    worst = known[np.argsort(-means[known], kind="stable")][:_SHOWN_PLACES]
    shown = [
        f"{'(null)' if found.values[row] is None else found.values[row]} {_number(float(means[row]))} "
        f"({_many(found.measures['cells'][row])})"
        for row in worst
    ]
    more = len(known) - len(shown)
    return f"Largest mean relative distance by '{found.variable}': {'; '.join(shown)}" + (
        f"; and {more:,} {'value' if more == 1 else 'values'} more (--json has all)." if more else "."
    )


def _many(cells: float) -> str:
    return "1 cell" if cells == 1 else f"{cells:,.0f} cells"


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    if 0 < abs(value) < 0.0005:
        return "below 0.0005"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
