"""Estimates in the places of a list, such as districts: each a union of units of the geography.

Places may overlap, and need not cover everything. All of them are answered together: sums of estimates and their
covariances are worked out over the units that each place consists of (:mod:`stirred.margins.areas`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from stirred import errors
from stirred.estimates.place_estimates import Estimates
from stirred.margins.areas import Unions, union_covariances
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine
from stirred.tables.places import PlaceFile, read_places
from stirred.topdown.design import Answer, Design

if TYPE_CHECKING:
    from stirred.topdown.estimating import MeasuredRelease

Chosen = Mapping[str, tuple[str, ...]]


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


def place_list(
    spine: Spine, given: Any, column: str | None = None, *, unit_columns: Sequence[str] = (), taken: Sequence[str] = ()
) -> PlaceList:
    """The places of a CSV or Parquet file, or of a frame: a column named like a level of the geography holds the codes
    of its units (the finest level that has one), another one the names of places.

    >>> import pyarrow as pa
    >>> names = (pa.array(["s"]), pa.array(["01", "02", "03"]))
    >>> tree = Spine(("state", "town"), names, (np.array([0, 3]),))
    >>> place_list(tree, {"town": ["01", "03"], "district": ["north", "north"]}).remarks[0]
    "1 of 3 units of 'town' lies in no place of 'district'."
    """
    file = read_places(given, unit_columns or spine.levels[::-1], column, (*spine.levels, *taken))
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


# -- estimates -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ListedSites:
    """The places of a question: every place of a list, and what each is compared with, if anything; see
    :class:`stirred.topdown.compared_places.Sites`."""

    release: MeasuredRelease
    table: str
    where: Chosen
    listed: PlaceList
    against: Mapping[int, Index] | None
    """What all places are compared with: units by level."""
    level: None = None
    _seen: dict[Any, Any] = field(default_factory=dict, init=False)

    @property
    def column(self) -> str:
        """What the places are called in the answer."""
        return self.listed.column

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the places."""
        return self.listed.names

    @property
    def unions(self) -> tuple[Mapping[int, Index], ...]:
        """What all places are compared with."""
        return () if self.against is None else (self.against,)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the places."""
        return self.listed.remarks

    @property
    def kinds(self) -> Index:
        """Every place is of a kind of its own."""
        return np.arange(len(self.names), dtype=np.int64)

    samples = kinds

    def units(self, role: int, place: int) -> Mapping[int, Index]:
        """What a place consists of."""
        return self.unions[0] if role else self.listed.unions.of(place)

    def counts(self, role: int, by: tuple[str, ...]) -> Estimates:
        """Estimates of the counts by some attributes, with one row where they are the same for all places."""
        if (role, by) not in self._seen:
            where = dict(self.where)
            self._seen[role, by] = (
                self.release._in_union(self.table, by, where, self.unions[0], "union")
                if role
                else estimate_listed(self.release, self.table, by, where, self.listed)
            )
        return self._seen[role, by]  # type: ignore[no-any-return]

    def between(self, design: Design) -> list[list[list[Array]]]:
        """For every two of place 0 and place 1 and each block, the covariance of their vectors, place by place."""
        both = [union_covariances(tree, self.listed.unions) for tree in design.trees]
        own = [one for one, _ in both]
        if self.against is None:
            return [[own]]
        whole = {0: np.arange(self.release.spine.units(0))}
        if self.against.keys() == whole.keys() and len(self.against[0]) == len(whole[0]):
            cross = [one for _, one in both]
        else:
            cross = [self._with_other(design, at) for at in range(len(design.trees))]
        ((other,),) = design.between([self.against])
        repeated = [np.repeat(one, len(self.names), axis=0) for one in other]
        return [[own, cross], [[one.transpose(0, 2, 1) for one in cross], repeated]]

    def _with_other(self, design: Design, at: int) -> Array:
        """The covariance of each place's vector with that of the union that all are compared with."""
        assert self.against is not None
        tree, each = design.trees[at], np.eye(design.split.blocks[at].size)
        forms = {level: (some, np.repeat(each[None], len(some), axis=0)) for level, some in self.against.items()}
        found = tree.covariances(forms)
        total = np.zeros((len(self.names), *each.shape))
        for level, numbers in enumerate(found):
            total += self.listed.unions.added(level, numbers)
        return total


def estimate_listed(
    release: MeasuredRelease, table: str, by: tuple[str, ...], where: dict[str, tuple[str, ...]], listed: PlaceList
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
    values = np.where(np.isinf(variances), np.nan, _values(answer, unions, levels))
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
    values, variances = np.where(empty, 0.0, values), np.where(empty, 0.0, variances)
    plain = plain[0], np.where(empty, 0.0, plain[1])
    sums = release._weighted_sums(table, by, where, _Each(unions), variances, plain[1])
    found = release._estimates(
        table, by, where, listed.column, listed.names, values, variances, plain, sums, bool(empty.any())
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


@dataclass(frozen=True, eq=False)
class _Each(Sequence[Mapping[int, Index]]):
    """The units of each place, found when they are asked for."""

    unions: Unions

    def __len__(self) -> int:
        return self.unions.number

    def __getitem__(self, place: Any) -> Any:
        return self.unions.of(place)
