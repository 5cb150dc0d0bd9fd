"""The places of a question: units of a level, unions of units, the places of a list, tabulated areas, lists of blocks.

Places of a list, such as districts, may overlap, and need not cover everything. Each is a union of units of the
geography, and all of them are answered together: sums of estimates and their covariances are worked out over the units
that each place consists of (:mod:`stirred.margins.areas`). Counties, tracts and block groups as published need not be
units of the geography that was measured; they are such places, found by the published codes of blocks.

The invariant a reader must know: an area's blocks are told by their published codes, of 15 digits; a block that is
asked for and not there is an error, since a sum without it would be of another area.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from stirred import errors
from stirred._bounded_reading import plain
from stirred.estimates.place_estimates import Estimates
from stirred.margins.areas import Unions, union_covariances
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine
from stirred.tables.places import PlaceFile, read_places
from stirred.topdown.estimating.precision import Answer, Design
from stirred.topdown.noisy_files.form import BLOCK_CODE, TABULATED

if TYPE_CHECKING:
    from stirred.topdown.estimating.questions import MeasuredRelease

Union = Mapping[int, Index]
"""Units by level, taken together as one place."""
Chosen = Mapping[str, tuple[str, ...]]
"""The values that some attributes or recodes may have in the records that are counted."""


@dataclass(frozen=True, eq=False)
class Sites:
    """The places of a question: every unit of a level, every place of a list, or one union; and what each is compared
    with, if anything.

    Place 0 is the asked one, place 1 that which it is compared with.
    """

    release: MeasuredRelease
    table: str
    where: Chosen
    column: str | None
    """What the places are called in the answer; None where there is one for each row and it needs no name."""
    names: tuple[str, ...]
    unions: tuple[Union, ...]
    """Of one place: itself and what it is compared with. Of several: what they are compared with."""
    level: int | None = None
    """That of the places, where they are all its units."""
    listed: PlaceList | None = None
    _seen: dict[Any, Any] = field(default_factory=dict, init=False)

    @property
    def kinds(self) -> Index:
        """The kind of each place: those of one kind have the same covariances. Every place of a list has its own."""
        if self.level is None:
            return np.arange(len(self.names), dtype=np.int64)
        return self.release.shapes.everywhere[self.level].of_unit

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the places."""
        return () if self.listed is None else self.listed.remarks

    def units(self, role: int, place: int) -> Union:
        """What a place consists of."""
        if role:
            return self.unions[-1]
        if self.listed is not None:
            return self.listed.unions.of(place)
        return self.unions[0] if self.level is None else {self.level: np.array([place])}

    def counts(self, role: int, by: tuple[str, ...]) -> Estimates:
        """Estimates of the counts by some attributes, with one row where they are the same for all places."""
        if (role, by) not in self._seen:
            if self.level is not None and not role:
                level = self.release.spine.levels[self.level]
                found = self.release.estimate(self.table, by, self.where, level=level)
            elif self.listed is not None and not role:
                found = self.release.in_places(self.table, by, self.where, listed=self.listed)
            else:
                found = self.release._in_union(self.table, by, self.where, self.units(role, 0), "union")
            self._seen[role, by] = found
        return self._seen[role, by]  # type: ignore[no-any-return]

    def between(self, design: Design) -> list[list[list[Array]]]:
        """For every two of place 0 and place 1 and each block, the covariance of their vectors, by kind of place."""
        if self.level is not None:
            own = [tree.covariances_of(self.level) for tree in design.trees]
        elif self.listed is not None:
            both = [union_covariances(tree, self.listed.unions) for tree in design.trees]
            own = [one for one, _ in both]
        else:
            return design.between(self.unions)
        if not self.unions:
            return [[own]]
        if self.level is not None:
            # All first units together are everything. A unit depends on none of them but the one that it lies in.
            cross = [tree.covariances_with(self.level, 0) for tree in design.trees]
            kinds = self.release.shapes.everywhere[0].of_unit
            every = [tree.covariances_of(0)[kinds].sum(axis=0, keepdims=True) for tree in design.trees]
        else:
            whole = self.unions[0].keys() == {0} and len(self.unions[0][0]) == self.release.spine.units(0)
            cross = [one for _, one in both] if whole else self._with_other(design)
            ((every,),) = design.between(self.unions)
        repeated = [np.repeat(one, len(part), axis=0) for one, part in zip(every, own, strict=True)]
        return [[own, cross], [[part.transpose(0, 2, 1) for part in cross], repeated]]

    def _with_other(self, design: Design) -> list[Array]:
        """By block, the covariance of each listed place's vector with that of the union that all are compared with."""
        assert self.listed is not None
        unions = self.listed.unions
        every = [tree.covariances(self.unions[0]) for tree in design.trees]
        return [np.asarray(sum(unions.added(at, numbers) for at, numbers in enumerate(found))) for found in every]


@dataclass(frozen=True, eq=False, repr=False)
class PlaceList:
    """Places with names, each a union of leaves of the geography."""

    column: str
    """What the places are called in answers: districts, precincts."""
    names: tuple[str, ...]
    unions: Unions
    leaves: tuple[Index, Index]
    """Pairs of a place and a leaf, by place."""
    remarks: tuple[str, ...]
    """What a reader must know: units in no place, or in several."""

    def __repr__(self) -> str:
        return f"<PlaceList: {len(self.names):,} places called '{self.column}'>"

    def leaves_of(self, name: str) -> Index:
        """The leaves of one place."""
        if name not in self._numbers:
            raise errors.unknown_geounit(self.column, name)
        start, stop = np.searchsorted(self.leaves[0], [self._numbers[name], self._numbers[name] + 1])
        return self.leaves[1][start:stop]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}


def place_list(spine: Spine, given: Any, column: str | None = None, taken: Sequence[str] = ()) -> PlaceList:
    """The places of a CSV or Parquet file, or of a frame: a column named like a level of the geography holds the codes
    of its units (the finest level that has one), another one the names of places.

    >>> import pyarrow as pa
    >>> names = (pa.array(["s"]), pa.array(["01", "02", "03"]))
    >>> tree = Spine(("state", "town"), names, (np.array([0, 3]),))
    >>> place_list(tree, {"town": ["01", "03"], "district": ["north", "north"]}).remarks[0]
    "1 of 3 units of 'town' lies in no place of 'district'."
    """
    file = read_places(given, spine.levels[::-1], column, (*spine.levels, *taken))
    level = spine.levels.index(file.unit)
    units = numbers_of(file, file.codes, spine, level)
    numbers_of(file, file.placeless, spine, level)
    place, leaf = _spread(spine, level, file.of_row, units)
    order = np.lexsort((leaf, place))
    place, leaf = place[order], leaf[order]
    unions = Unions.of_leaves(spine, place, leaf, len(file.names))
    said = (*_remarks(file, spine, level, units), _distance(unions.overlap.distances()))
    return PlaceList(file.column, file.names, unions, (place, leaf), said)


def numbers_of(file: PlaceFile, codes: pl.Series, spine: Spine, level: int) -> Index:
    """The units of a level that codes name; unknown codes are refused."""
    known = pl.DataFrame({"code": pl.Series(spine.names[level]).cast(pl.String)}).with_row_index("number")
    found = pl.DataFrame({"code": codes}).join(known, on="code", how="left", maintain_order="left")
    missing = found.filter(found["number"].is_null())["code"].unique(maintain_order=True)
    if len(missing):
        raise errors.places_unknown(file.file, file.unit, len(missing), missing.head(errors.FEW).to_list())
    return found["number"].to_numpy().astype(np.int64)


def _spread(spine: Spine, level: int, place: Index, units: Index) -> tuple[Index, Index]:
    """Pairs of a place and a unit as pairs of a place and a leaf."""
    bounds = spine.first_leaf(level)
    sizes = bounds[units + 1] - bounds[units]
    starts = np.repeat(bounds[units] - (np.cumsum(sizes) - sizes), sizes)
    return np.repeat(place, sizes), starts + np.arange(len(starts))


def _remarks(file: PlaceFile, spine: Spine, level: int, units: Index) -> tuple[str, ...]:
    every = spine.units(level)
    outside, several = every - len(np.unique(units)), file.several()
    said = [
        (outside, f"no place of '{file.column}'"),
        (several, f"more than one place of '{file.column}', and counts in each of them"),
    ]
    return tuple(
        f"{number:,} of {every:,} units of '{file.unit}' {'lies' if number == 1 else 'lie'} in {words}."
        for number, words in said
        if number
    )


def _distance(fewest: Index) -> str:
    """How many units places take, in words."""
    least, middle, most = (f"{int(one):,}" for one in (fewest.min(), np.sort(fewest)[len(fewest) // 2], fewest.max()))
    return (
        f"A place takes {least} to {most} units of the geography, added or subtracted (median {middle}); errors grow "
        "with their number."
    )


def estimate_listed(
    release: MeasuredRelease, table: str, by: tuple[str, ...], where: Chosen, listed: PlaceList
) -> Estimates:
    """Counts by some attributes in every place of a list."""
    unions, has = listed.unions, listed.unions.has()
    levels = [level for level in range(has.shape[1]) if has[:, level].any()]
    answer = release._answer(table, by, where, max(levels))
    design = answer.design
    own = [union_covariances(tree, unions)[0] for tree in design.trees]
    variances = design.asked.spread(design.split.variances(design.asked, own))
    unknown = np.stack([design.unknown(level) for level in range(has.shape[1])])
    variances[(has > 0) @ unknown] = np.inf
    values = _values(answer, unions, levels)
    plain = np.zeros_like(variances), np.zeros_like(variances)
    for level in levels:
        only = (has[:, level] > 0) & (has.sum(axis=1) == has[:, level])
        if only.any():
            here = design.plain_sums(level, variances[only], has[only, level, None])
            for one, numbers in zip(plain, here, strict=True):
                one[only] = numbers
    empty = np.ones(variances.shape, dtype=np.bool_)
    for level in levels:
        possible = ~release._impossible(table, by, where, level)
        empty &= unions.added(level, possible) == 0
    found = release._estimates(
        table, by, where, listed.column, listed.names, values, variances, plain, empty, unions.of
    )
    return replace(found, place_remarks=listed.remarks)


def _values(answer: Answer, unions: Unions, levels: Sequence[int]) -> Array:
    """The estimates of every asked group, added up within the places; one block at a time is held for all units."""
    design = answer.design
    tensor = np.zeros((unions.number, *design.split.shape))
    for block, tree, upward in zip(design.split.blocks, design.trees, answer.upward, strict=True):
        total = sum(unions.added(level, tree.down(upward, level)) for level in levels)
        block.put(tensor, np.asarray(total))
    return design.split.told(design.asked, tensor)


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
