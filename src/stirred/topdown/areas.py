"""Tabulated areas and lists of blocks as places of a list, found by the published codes of blocks.

Counties, tracts and block groups as published need not be units of the geography that was measured; each is a union
of such units, as the places of any list are (:mod:`stirred.topdown.place_lists`).

The invariant a reader must know: an area's blocks are told by their published codes, of 15 digits; a block that is
asked for and not there is an error, since a sum without it would be of another area.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from stirred import errors
from stirred._received import plain
from stirred.margins.areas import Unions
from stirred.margins.spine import Index, Spine
from stirred.topdown.nmf_form import BLOCK_CODE, TABULATED
from stirred.topdown.place_lists import PlaceList


def block_codes(spine: Spine) -> pa.Array:
    """The published code of every finest geounit, of 15 digits."""
    names = spine.names[-1]
    lengths = pc.unique(pc.utf8_length(names)).to_pylist()
    if spine.levels[-1] == "block" and len(lengths) == 1:
        if lengths[0] == TABULATED["block"]:
            return names
        if lengths[0] >= BLOCK_CODE:
            # The digit of the block group stands twice: by itself, and as the first of the block's four.
            start = lengths[0] - BLOCK_CODE
            tract, block = (pc.utf8_slice_codeunits(names, start + a, start + b) for a, b in ((0, 11), (12, 16)))
            return pc.binary_join_element_wise(tract, block, "")
    raise errors.noisy_question(
        "Tabulated areas and lists of blocks",
        f"need blocks with codes of {TABULATED['block']} digits as the finest geounits; the finest here are called "
        f"'{spine.levels[-1]}'",
    )


def tabulated_areas(spine: Spine, kind: str) -> PlaceList:
    """All published counties, say, by the first digits of the codes of blocks."""
    if kind not in TABULATED:
        raise errors.unknown_choice("kind of tabulated area", kind, list(TABULATED))
    encoded = pc.dictionary_encode(pc.utf8_slice_codeunits(block_codes(spine), 0, TABULATED[kind]))
    return _listed(spine, kind, encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64))


def listed_areas(spine: Spine, path: Path) -> PlaceList:
    """Areas by a list of blocks: a CSV or Parquet file with the column ``block``, and ``area`` for several areas.

    A code with fewer than 15 digits stands for all blocks that begin with it.
    """
    asked, areas = _read_list(path)
    codes = block_codes(spine)
    order = pc.array_sort_indices(codes).to_numpy()
    ordered = np.array(codes.take(pa.array(order)).to_pylist())
    names = sorted(set(areas))
    number = {name: at for at, name in enumerate(names)}
    of_leaf = np.full(spine.leaves, -1, dtype=np.int64)
    wanted = np.array(asked)
    # "~" sorts behind every digit, so that the end of a prefix is found like its beginning.
    first, last = np.searchsorted(ordered, wanted), np.searchsorted(ordered, np.char.add(wanted, "~"))
    for code, area, begin, end in zip(asked, areas, first.tolist(), last.tolist(), strict=True):
        leaves = order[begin:end]
        if not len(leaves):
            raise errors.noisy_question(
                f"The list of blocks {path}", f"has '{plain(code, 40)}', with which no block here begins"
            )
        if ((of_leaf[leaves] >= 0) & (of_leaf[leaves] != number[area])).any():
            raise errors.noisy_question(
                f"The list of blocks {path}", f"cannot have '{plain(code, 40)}' in two areas; ask for one at a time"
            )
        of_leaf[leaves] = number[area]
    return _listed(spine, "area", names, of_leaf)


def _listed(spine: Spine, column: str, names: Sequence[str], of_leaf: Index) -> PlaceList:
    """Places without common leaves; ``of_leaf`` has the number of each leaf's place, or -1."""
    order = np.argsort(of_leaf, kind="stable")
    leaf = order[np.searchsorted(of_leaf[order], 0) :].astype(np.int64)
    place = of_leaf[leaf]
    return PlaceList(column, tuple(names), Unions.of_leaves(spine, place, leaf, len(names)), (place, leaf), ())


def _read_list(path: Path) -> tuple[list[str], list[str]]:
    try:
        if path.suffix == ".parquet":
            read = pq.read_table(path)
        else:
            text = dict.fromkeys(("block", "area"), pa.string())
            read = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text))
        asked = [str(code).strip() for code in read["block"].to_pylist()]
        areas = [str(one) for one in read["area"].to_pylist()] if "area" in read.column_names else None
    except (OSError, KeyError, pa.ArrowException):
        raise errors.noisy_question(
            f"The list of blocks {path}", "must be a CSV or Parquet file with the column block, and perhaps area"
        ) from None
    if not asked or not all(code.isdigit() and len(code) <= TABULATED["block"] for code in asked):
        raise errors.noisy_question(f"The list of blocks {path}", "must have codes of up to 15 digits, at least one")
    return asked, areas or [path.stem] * len(asked)
