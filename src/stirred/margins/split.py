"""Asked margins of a table, split into blocks, whatever the measurements are over: one table, or units of a geography.

A :class:`Split` has a basis for each attribute and the blocks that follow (:mod:`stirred.margins.margin_blocks`). It
takes measured values to the numbers of the blocks and back, and puts variances and covariances of asked groups together
from one covariance matrix for each block.

The invariant a reader must know: blocks are uncorrelated, so variances of a form add up over blocks, and within a block
over its copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.margin_blocks import AnyAxis, Array, Block, Factor, Margin, Places, axes_for, blocks_of, contracted

_TINY = 1e-9

MarginGroups = tuple[Margin, Places]
"""Some groups of a margin, in the order of a tensor."""


@dataclass(frozen=True, eq=False)
class Split:
    """Bases and blocks for asked margins, given what is measured."""

    axes: tuple[AnyAxis, ...]
    blocks: tuple[Block, ...]

    @classmethod
    def of(
        cls, table: str, asked: Sequence[Margin], known: Sequence[Margin], largest: int, apart: Sequence[int] = ()
    ) -> Split:
        """Refuse blocks of more than ``largest`` numbers; ``apart`` as in :func:`axes_for`."""
        axes = axes_for(asked, known, apart)
        blocks = blocks_of(axes)
        if (size := max(block.size for block in blocks)) > largest:
            raise errors.estimate_too_wide(table, size, largest)
        return cls(axes, tuple(blocks))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of basis vectors of each attribute."""
        return tuple(sum(axis.widths) for axis in self.axes)

    @property
    def numbers(self) -> int:
        """How many numbers all blocks have together."""
        return math.prod(self.shape)

    def projected(self, margin: Margin, values: NDArray[np.generic]) -> Array:
        """A'y in the basis of the blocks, as a tensor; values have a row for each unit."""
        return contracted(margin.arranged(values), [axis.to_basis(factor) for factor, axis in self._pairs(margin)])

    def told(self, margin: Margin, tensor: Array) -> Array:
        """A x for numbers x in the basis of the blocks: a row for each unit, a column for each group of a margin."""
        return margin.spread(contracted(tensor, [axis.to_groups(factor) for factor, axis in self._pairs(margin)]))

    def variances(self, asked: Margin, covariances: Sequence[Array]) -> Array:
        """From one covariance matrix per block and kind, a row for each kind; groups in the order of a tensor."""
        total: Array | None = None
        scale: Array | None = None
        for block, matrices in zip(self.blocks, covariances, strict=True):
            shared, squares = block.loadings(asked)
            rows, same = np.unique(np.round(shared, 12), axis=0, return_inverse=True)
            part = np.einsum("fi,kij,fj->kf", rows, matrices, rows, optimize=True)[:, same.ravel()] * squares
            bound = (np.abs(matrices).max(axis=(1, 2))[:, None] * (rows**2).sum(axis=1))[:, same.ravel()] * squares
            total = part if total is None else total + part
            scale = bound if scale is None else scale + bound
        assert total is not None and scale is not None
        return np.where(total <= 1e-13 * scale, 0.0, total)

    def covariances(self, matrices: Sequence[Array], one: MarginGroups, other: MarginGroups) -> Array:
        """The covariance of pairs of groups, given for each block the covariance of the vectors of pairs of places:
        a row for each pair of places, a column for each pair of groups.

        The groups may be of any margins that are sums of the asked one's groups.
        """
        total = np.zeros((len(matrices[0]), len(one[1])))
        for block, between in zip(self.blocks, matrices, strict=True):
            factor = block.products(*one, *other)
            both = [block.loadings(margin)[0][groups] for margin, groups in (one, other)]
            pairs, same = np.unique(np.round(np.hstack(both), 12), axis=0, return_inverse=True)
            left, right = pairs[:, : block.size], pairs[:, block.size :]
            total += np.einsum("fi,kij,fj->kf", left, between, right, optimize=True)[:, same.ravel()] * factor
        return total

    def unseen(self, margin: Margin, unknown: Sequence[Array]) -> NDArray[np.bool_]:
        """Which groups of a margin, in the order of a tensor, need a direction that is not known in some block."""
        found = np.zeros(math.prod(len(factor) for factor in margin.factors), dtype=np.bool_)
        for block, directions in zip(self.blocks, unknown, strict=True):
            shared, squares = block.loadings(margin)
            size = np.abs(shared @ directions).max(axis=1, initial=0)
            found |= size * np.sqrt(squares) > _TINY
        return found

    def _pairs(self, margin: Margin) -> Iterator[tuple[Factor, AnyAxis]]:
        return zip(margin.factors, self.axes, strict=True)
