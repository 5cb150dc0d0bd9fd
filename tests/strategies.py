"""What property tests of several folders draw, so that a case that fails shrinks to a small one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray


def laws(rows: int, outputs: int, least: int = 1, most: int = 1000) -> st.SearchStrategy[NDArray[np.float64]]:
    """Laws on as many outputs, from integer weights; the simplest are uniform, or certain where ``least`` is 0."""

    def normalised(weights: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = weights + (weights.sum(axis=1, keepdims=True) == 0) * (np.arange(outputs) == 0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    return hnp.arrays(np.int64, (rows, outputs), elements=st.integers(least, most)).map(normalised)


class Draws:
    """Stands in for numpy's generator in functions that build cases: each number is drawn by hypothesis, and shrinks.

    Laws are not those of numpy: simple and extreme values come more often, and any value that a law allows may come.
    """

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def _array(self, size: Any, elements: st.SearchStrategy[Any], kind: Any) -> Any:
        if size is None:
            return self._data.draw(elements)
        shape = tuple(int(one) for one in np.atleast_1d(size))
        return self._data.draw(hnp.arrays(kind, shape, elements=elements))

    def integers(self, low: Any, high: Any = None, size: Any = None) -> Any:
        """From ``low`` to ``high`` (or from 0 to ``low``), the upper end excluded."""
        low, high = (0, low) if high is None else (low, high)
        if np.ndim(high):
            return low + np.array([self._data.draw(st.integers(0, int(one) - 1 - low)) for one in high], dtype=np.int64)
        return self._array(size, st.integers(int(low), int(high) - 1), np.int64)

    def random(self, size: Any = None) -> Any:
        """From 0 to 1, in steps of an eighth."""
        return self._array(size, st.integers(0, 7).map(lambda eighths: eighths / 8), np.float64)

    def uniform(self, low: float, high: float, size: Any = None) -> Any:
        return self._array(size, st.floats(low, high), np.float64)

    def normal(self, scale: float = 1.0, size: Any = None) -> Any:
        return scale * self._array(size, st.floats(-4, 4), np.float64)

    def gamma(self, shape: float, scale: float, size: Any = None) -> Any:
        return scale * self._array(size, st.sampled_from([0, 0.3, 1, 3]).map(lambda one: one * shape), np.float64)

    def poisson(self, mean: Any, size: Any = None) -> Any:
        """The means themselves, rounded, where an array is given; else counts up to a few times the mean."""
        if size is None:
            return np.rint(mean).astype(np.int64)
        return self._array(size, st.integers(0, int(4 * mean) + 1), np.int64)

    def permutation(self, values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        return np.array(self._data.draw(st.permutations(list(values))))

    def choice(self, values: Any, size: int | None = None, p: Any = None) -> Any:
        """Any of those that have a positive probability."""
        given = list(range(values)) if isinstance(values, int) else list(values)
        possible = [one for at, one in enumerate(given) if p is None or p[at] > 0]
        if size is None:
            return self._data.draw(st.sampled_from(possible))
        return np.array(possible)[self.integers(len(possible), size=size)]

    def dirichlet(self, weights: Sequence[float] | NDArray[Any]) -> NDArray[np.float64]:
        return self._data.draw(laws(1, len(weights), least=0))[0]
