"""Random specifications over files of persons with one column ``v``, and small sets of such files to hold them against.

Everything that the library reasons about in general is varied: order, size, neighbours or paths, scale, invariants,
output premetric, budget. On the listed files every statement can be checked by enumeration.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from finite_oracle import random_rows
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, approximate_power, pure_power
from stirred.spec import Domain, Flavor, InputPremetric, Invariant, Multiverse, OutputPremetric, Specification
from stirred.spec.order.finite_flavors import explicit
from stirred.spec.order.finite_mechanisms import FiniteMechanism


def files(longest: int, values: str) -> dict[str, list[dict[str, str]]]:
    named = (file for size in range(longest + 1) for file in itertools.product(values, repeat=size))
    return {"".join(file): [{"v": value} for value in file] for file in named}


FILES = files(2, "01")
MORE_FILES = files(3, "012")
DOMAIN = Domain("files of persons", free=True)
INVARIANTS = (
    Invariant("person"),
    Invariant("person", by=("v",)),
    Invariant("person", where=(("v", "1"),)),
    Invariant("person", at_least=1),
    Invariant("person", at_least=2),
    Invariant("person", by=("v",), at_least=1),
)
OUTPUTS = (
    OutputPremetric("multiplicative"),
    OutputPremetric("multiplicative"),
    OutputPremetric("normalised-renyi"),
    OutputPremetric("normalised-renyi"),
    OutputPremetric("approximate", "0.1"),
    OutputPremetric("approximate", "0.05"),
    OutputPremetric("approximate", 0),
    OutputPremetric("renyi", 2),
    OutputPremetric("renyi", 3),
    OutputPremetric("total-variation"),
    OutputPremetric("trade-off"),
    OutputPremetric("approximate-profile"),
)


def pick(random: np.random.Generator, choices):
    return choices[random.integers(len(choices))]


def random_flavor(random: np.random.Generator) -> Flavor:
    output = pick(random, OUTPUTS)
    curve = output.name == "trade-off"
    premetric = InputPremetric(
        "records",
        "person",
        bounded=bool(random.integers(2)),
        ordered=bool(random.integers(2)),
        sharpened=bool(random.integers(2)) and not curve,
        scale=1 if curve else pick(random, (1, 1, 1, 2, "1/2")),
    )
    chosen = random.choice(len(INVARIANTS), pick(random, (0, 0, 1, 1, 2)), replace=False)
    return Flavor(DOMAIN, Multiverse(tuple(INVARIANTS[i] for i in chosen)), premetric, output)


def random_pair(random: np.random.Generator) -> tuple[Flavor, Flavor]:
    """Two flavors, more often than not alike in all blocks but one."""
    first, second = random_flavor(random), random_flavor(random)
    if random.random() < 0.6:
        names = ("multiverse", "input_premetric", "output_premetric")
        blocks = {name: getattr(first, name) for name in names}
        name = pick(random, names)
        blocks[name] = getattr(second, name)
        premetric = blocks["input_premetric"]
        if blocks["output_premetric"].name != "trade-off" or (premetric.scale == 1 and not premetric.sharpened):
            second = Flavor(DOMAIN, **blocks)
    return first, second


def random_budget(random: np.random.Generator, output: OutputPremetric):
    x = pick(random, (0, "0.1", "0.25", "0.5", 1, "1.5", 2, 4))
    return budgets_like(output, Fraction(x))[random.integers(3) if output.name == "trade-off" else 0]


def budgets_like(output: OutputPremetric, x: Fraction):
    """Budgets of one size."""
    if output.name == "trade-off":
        return GaussianCurve(float(x)), pure_power(x), approximate_power(x, 0.1)
    if output.name == "approximate-profile":
        return (EpsilonProfile(((0.05, 2 * float(x)), (0.1, float(x)))),)
    return (x,)


def listed(specification: Specification, names=FILES) -> Specification:
    return explicit(specification.flavor, names).at(specification.budget)


# -- mechanisms ----------------------------------------------------------------------------------------------


def file_mechanism(random: np.random.Generator) -> FiniteMechanism:
    """A mechanism on the small files: any, without a look at the order, or with one at some number only."""
    names = tuple(FILES)
    rows = random_rows(random, len(names), int(random.integers(2, 5)))
    look = random.integers(5)
    if look == 1:
        rows[names.index("10")] = rows[names.index("01")]
    elif look == 2:  # the number of ones
        rows = rows[[name.count("1") for name in names]]
    elif look == 3:  # the number of records, with certainty
        sizes = np.eye(3)[[len(name) for name in names]]
        rows = np.einsum("ij,ik->ijk", rows, sizes).reshape(len(names), -1)
    elif look == 4:  # which file it is, with probability 1/20
        rows = np.hstack([rows * 0.95, np.eye(len(names)) * 0.05])
    return FiniteMechanism(names, tuple(f"t{i}" for i in range(rows.shape[1])), rows)


def calibrated(flavor: Flavor, mechanism: FiniteMechanism) -> Specification | None:
    """The specification that a mechanism satisfies narrowly on the small files; None if no finite one."""
    loss = mechanism.loss(flavor, FILES, deltas=(0.05, 0.1)).value
    if isinstance(loss, float):
        return flavor.at(Fraction(loss) * (1 + Fraction(1, 10**9))) if loss < math.inf else None
    if flavor.output_premetric.name == "approximate-profile":
        return flavor.at(EpsilonProfile(tuple((d, e * (1 + 1e-9)) for d, e in loss.points)))
    for mu in (0, 0.25, 0.5, 1, 2, 4):
        if mechanism.satisfies(flavor.at(GaussianCurve(mu)), FILES):
            return flavor.at(GaussianCurve(mu))
    return None
