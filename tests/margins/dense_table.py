"""Random small tables with noisy margins, and generalised least squares on all their cells at once: dense and slow."""

from __future__ import annotations

import numpy as np

from stirred.margins.schema import Attribute, Recode, Schema


def random_schema(rng):
    """One to three attributes of one to five values, with up to three recodes that may nest or cross."""
    attributes = tuple(
        Attribute(name, tuple(f"{name}{k}" for k in range(rng.integers(1, 6)))) for name in "abc"[: rng.integers(1, 4)]
    )
    recodes = []
    for number in range(rng.integers(0, 4)):
        base = attributes[rng.integers(len(attributes))]
        codes = rng.integers(0, rng.integers(1, len(base.values) + 1), len(base.values))
        groups = tuple(
            (f"g{code}", tuple(value for value, one in zip(base.values, codes, strict=True) if one == code))
            for code in np.unique(codes)
        )
        recodes.append(Recode(f"r{number}", base.name, groups))
    return Schema(attributes, tuple(recodes))


def random_margin(schema, rng):
    """Some of the names of a schema, in any order."""
    size = int(rng.integers(0, min(4, len(schema.names) + 1)))
    return [str(name) for name in rng.permutation(schema.names)[:size]]


def random_where(schema, rng):
    found = {}
    for name in rng.permutation(schema.names)[: rng.integers(0, 3)]:
        known = schema.values(str(name))
        found[str(name)] = [str(v) for v in rng.permutation(known)[: rng.integers(1, len(known) + 1)]]
    return found


def rows(schema, by, where=None):
    """A row for each group, a column for each cell."""
    found = np.eye(schema.number_of_groups(by))[:, schema.groups(by)]
    return found * schema.where(where or {})


class DenseTable:
    """Unknowns are the cells; measurements have a variance each."""

    def __init__(self, schema, measured, stratum=None, factors=None):
        self.schema = schema
        matrices, variances = [], []
        for by, variance in measured:
            matrices.append(rows(schema, by))
            labels = schema.labels(by)
            one = [
                float(variance) * (float(factors[label[by.index(stratum)]]) ** 2 if stratum in by else 1.0)
                for label in labels
            ]
            variances.append(np.array(one))
        self.sizes = [len(one) for one in variances]
        self.matrix, self.noise = np.vstack(matrices), np.concatenate(variances)
        white = self.matrix / np.sqrt(self.noise)[:, None]
        _, singular, vectors = np.linalg.svd(self.matrix)
        self.seen = vectors[: int((singular > 1e-9 * max(1, singular.max())).sum())].T
        self.gain = self.seen @ np.linalg.pinv(white @ self.seen, rcond=1e-14) / np.sqrt(self.noise)

    def estimable(self, forms):
        return np.abs(forms - forms @ self.seen @ self.seen.T).max(axis=1, initial=0) < 1e-7

    def weights(self, forms):
        return forms @ self.gain

    def covariances(self, one, other):
        return self.weights(one) * self.noise @ self.weights(other).T
