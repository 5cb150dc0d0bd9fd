"""Finite cases for the limits of learning: random graphs, mechanisms and models, and a few that attain the bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stirred.lab.limits.finite_analysis import FiniteAnalysis
from stirred.lab.limits.pufferfish import Pufferfish
from stirred.lab.reproduce.catalogue import published
from stirred.lab.reproduce.verdicts import _read
from stirred.limits import DatabaseGraph


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(51)


def printed_number(name):
    """The number of an item as it is printed, as a number."""
    return float(_read(published(name))[0])


def random_pairs(rng, count, size, zeros=0.0):
    """Pairs of distributions with the same support, ties among them."""
    weights = np.where(rng.random((2, count, size)) < 0.2, 1.0, rng.gamma(0.5, size=(2, count, size)) + 1e-6)
    held = rng.random((count, size)) >= zeros
    held[:, 0] = True
    weights *= held
    return weights / weights.sum(axis=-1, keepdims=True)


def subsets(size):
    """All events, one in each row."""
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1


def path(length):
    """Datasets 0, 1, ..., length in a row."""
    return DatabaseGraph.of_edges(range(length + 1), [(k, k + 1) for k in range(length)])


def geometric_rows(length, epsilon):
    """The truncated geometric count: P_k(t) proportional to e^(-epsilon |t - k|), the tails put on 0 and ``length``."""
    a = math.exp(-epsilon)
    k, t = np.mgrid[0 : length + 1, 0 : length + 1]
    rows = (1 - a) / (1 + a) * a ** np.abs(t - k)
    rows[:, 0], rows[:, -1] = a ** k[:, 0] / (1 + a), a ** (length - k[:, 0]) / (1 + a)
    return rows


def response_rows(records, epsilon):
    """Randomised response of each bit, datasets in the order of DatabaseGraph.hamming."""
    flip = 1 / (1 + math.exp(epsilon))
    one = np.array([[1 - flip, flip], [flip, 1 - flip]])
    rows = one
    for _ in range(records - 1):
        rows = np.kron(rows, one)
    return rows


def random_graph(rng, size):
    """Any graph, connected or not."""
    chance = rng.choice([0.15, 0.4, 0.8])
    edges = [(a, b) for a in range(size) for b in range(a) if rng.random() < chance]
    return DatabaseGraph.of_edges(range(size), edges)


def random_analysis(rng, connected=True, zeros=0.0):
    """A mechanism whose outputs tell, for some components, that the data are not in them; models with zeros; a prior.

    If ``connected``, each output can come from one component only, so that every support is connected. ``zeros`` is
    the chance that an output is impossible for a dataset, where the loss becomes infinite, and a parameter for the
    prior.
    """
    size, outputs, parameters = (int(rng.integers(2, high)) for high in (7, 6, 5))
    graph = random_graph(rng, size)
    labels = graph.component_of
    number = labels.max() + 1
    rows = np.exp(rng.uniform(0.1, 2) * rng.random((size, outputs)))
    if connected:
        # Every component has its outputs, the first of them certainly.
        owner = np.append(np.arange(number), rng.integers(0, number, outputs))
        rows = np.exp(rng.uniform(0.1, 2) * rng.random((size, len(owner)))) * (owner == labels[:, None])
    if zeros:
        kept = rng.random(rows.shape) >= zeros
        kept[np.arange(size), labels if connected else rng.integers(0, outputs, size)] = True
        rows = rows * kept
    rows /= rows.sum(axis=1, keepdims=True)
    models = rng.gamma(0.4, size=(parameters, size)) * (rng.random((parameters, size)) < 0.7)
    models[:, int(rng.integers(size))] += 0.1
    models /= models.sum(axis=1, keepdims=True)
    prior = rng.gamma(0.7, size=parameters) + 1e-3
    if zeros:
        prior[rng.random(parameters) < zeros] = 0
        prior[int(rng.integers(parameters))] += 0.1
    return FiniteAnalysis(rows, graph, models, prior / prior.sum())


def random_rows(rng, size, outputs, zeros=0.0):
    rows = rng.gamma(0.7, size=(size, outputs)) + 1e-3
    rows *= rng.random(rows.shape) >= zeros
    rows[:, 0] += 1e-3
    return rows / rows.sum(axis=1, keepdims=True)


def random_laws(rng, count, size):
    laws = rng.gamma(0.5, size=(count, size)) * (rng.random((count, size)) < 0.7) + 0.0
    laws[:, int(rng.integers(size))] += 0.1
    return laws / laws.sum(axis=1, keepdims=True)


def random_pufferfish(rng, zeros=0.0):
    """An instantiation with disjoint and other secrets, some impossible for some attackers, and a mechanism."""
    while True:
        size, attackers = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        labels = rng.integers(0, 3, size)
        secrets = {f"s{k}": np.flatnonzero(labels == k).tolist() for k in range(3) if np.any(labels == k)}
        secrets |= {"first": [0], "rest": list(range(1, size))}
        pairs = [
            pair for pair in itertools.combinations(secrets, 2)
            if not set(secrets[pair[0]]) & set(secrets[pair[1]]) and rng.random() < 0.7
        ]  # fmt: skip
        laws = {f"a{k}": law for k, law in enumerate(random_laws(rng, attackers, size))}
        possible = {name: [law[event].sum() > 0 for law in laws.values()] for name, event in secrets.items()}
        secrets = {name: event for name, event in secrets.items() if any(possible[name])}
        pairs = [(a, b) for a, b in pairs if any(x and y for x, y in zip(possible[a], possible[b], strict=True))]
        if pairs:
            case = Pufferfish(tuple(range(size)), laws, secrets, pairs)
            return case, random_rows(rng, size, int(rng.integers(2, 5)), zeros)
