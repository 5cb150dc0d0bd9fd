"""The referee of ``spec``: no *yes* refuted, no composition exceeded, no conversion violated, on listed files.

Specifications are those of ``tests/spec/random_specifications.py``: files of at most two records with one column, all
blocks varied. Distances, universes, divergences and the condition of Definition 2.4.5 are written out again here.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import deque
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from referee_harness import Case, claim

sys.path.append(str(Path(__file__).parents[1] / "spec"))

from random_specifications import FILES, budgets_like, random_flavor, random_pair, random_rows

from stirred import errors
from stirred.loss import worst_pair
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve
from stirred.spec import Flavor, InputPremetric, Specification, compose
from stirred.spec.order.conversions import convert
from stirred.spec.order.finite_mechanisms import FiniteMechanism

NAMES = tuple(FILES)
SLACK = 1e-5
"""Relative, of what a budget allows: budgets are floats, and suprema over orders are looked for on a grid here."""

ORDERS = np.geomspace(1e-3, 1e3, 80)
LEVELS = np.array([0.0, 1e-4, 0.003, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])

# -- definitions, written out --------------------------------------------------------------------------------


def distance(premetric: InputPremetric, x: str, y: str) -> float:
    """The least number of changes of one record that lead from one file to the other, by going through all files."""
    first, second = (x, y) if premetric.ordered else ("".join(sorted(x)), "".join(sorted(y)))
    steps = _steps(first, second, premetric.bounded, premetric.ordered)
    if not premetric.sharpened and steps > 1:
        return math.inf
    return steps * float(premetric.scale)


def _steps(x: str, y: str, bounded: bool, ordered: bool) -> float:
    seen, waiting = {x: 0}, deque([x])
    while waiting:
        file = waiting.popleft()
        if file == y:
            return seen[file]
        if bounded:
            near = {file[:k] + value + file[k + 1 :] for k in range(len(file)) for value in "01"}
        else:
            near = {file[:k] + file[k + 1 :] for k in range(len(file))}
            near |= {file[:k] + value + file[k:] for k in range(len(file) + 1) for value in "01" if len(file) < 3}
        for other in near if ordered else {"".join(sorted(one)) for one in near}:
            if other not in seen:
                seen[other] = seen[file] + 1
                waiting.append(other)
    return math.inf


def universe(flavor: Flavor | Specification, file: str) -> tuple[Any, ...]:
    """What the invariants hold fixed of a file."""
    found: list[Any] = []
    for one in flavor.multiverse.invariants:
        wanted = dict(one.where).get("v")
        kept = [record for record in file if wanted is None or record == wanted]
        counts = {value: kept.count(value) for value in "01"} if one.by else {"": len(kept)}
        found.append(tuple(n if one.at_least is None else n >= one.at_least for n in counts.values()))
    return tuple(found)


def divergence(name: str, parameter: float | None, p: np.ndarray, q: np.ndarray) -> float:
    """D(P, Q) in the units of its Lipschitz condition; D_NoR is the root."""
    some = (p > 0) | (q > 0)
    p, q = p[some], q[some]
    if bool(np.all(np.abs(p - q) <= 1e-14)):
        return 0.0
    if name == "total-variation":
        return float(np.abs(p - q).sum() / 2)
    if name == "approximate":
        return approximate(p, q, float(parameter or 0))
    if bool(np.any((p > 0) & (q == 0))) or (name != "renyi" and bool(np.any((q > 0) & (p == 0)))):
        return math.inf
    p, q = p[p > 0], q[p > 0]
    u = np.log(p / q)
    if name == "multiplicative":
        return float(np.abs(u).max())
    if name == "renyi":
        alpha = float(parameter or 0)
        return max(0.0, float(np.log(np.sum(q * np.exp(alpha * u))) / (alpha - 1)))
    best = 0.0
    for one, loss in ((p, u), (q, -u)):
        values = over_orders(one, loss, ORDERS)
        at = int(np.argmax(values))
        around = np.linspace(ORDERS[max(at - 1, 0)], ORDERS[min(at + 1, len(ORDERS) - 1)], 80)
        best = max(best, float(values[at]), float(over_orders(one, loss, around).max()), float(np.sum(one * loss)))
    return math.sqrt(max(best, 0.0))


def over_orders(p: np.ndarray, losses: np.ndarray, x: np.ndarray) -> np.ndarray:
    """D_(1+x) / (1+x) from the losses ln p/q."""
    top = max(float(losses.max()), 0.0) * x
    inside = np.sum(p * np.exp(np.multiply.outer(x, losses) - top[:, None]), axis=1)
    return np.asarray((np.log(inside) + top) / x / (1 + x))


def approximate(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    """The smallest epsilon at delta: over all events one by one, or where there are too many by halving intervals."""
    worst = 0.0
    if len(p) > 10:
        for first, second in ((p, q), (q, p)):
            low, high = 0.0, 60.0
            if float(first[second == 0].sum()) > delta + 1e-12:
                return math.inf
            while high - low > 1e-11:
                middle = (low + high) / 2
                enough = float(np.maximum(first - math.exp(middle) * second, 0).sum()) <= delta + 1e-13
                low, high = (low, middle) if enough else (middle, high)
            worst = max(worst, low)
        return worst
    events = np.array(list(itertools.product((0, 1), repeat=len(p))))
    for first, second in ((events @ p, events @ q), (events @ q, events @ p)):
        left = first - delta
        if bool(np.any((left > 1e-12) & (second == 0))):
            return math.inf
        some = (left > 1e-12) & (second > 0)
        worst = max(worst, float(np.log(left[some] / second[some]).max(initial=0.0)))
    return worst


def powers(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The greatest power at each of some levels, by duality."""
    slopes = np.append(q[p > 0] / p[p > 0], 0.0)
    rest = np.maximum(q - np.multiply.outer(slopes, p), 0).sum(axis=1)
    return np.minimum(1.0, (np.multiply.outer(slopes, LEVELS) + rest[:, None]).min(axis=0))


def compared(flavor: Flavor | Specification) -> list[tuple[int, int, float]]:
    """Ordered pairs of files of one universe at a finite distance."""
    found = []
    for (i, x), (j, y) in itertools.permutations(enumerate(NAMES), 2):
        apart = distance(flavor.input_premetric, x, y)
        if apart < math.inf and universe(flavor, x) == universe(flavor, y):
            found.append((i, j, apart))
    return found


def broken(specification: Specification, rows: np.ndarray) -> str:
    """Where the condition of Definition 2.4.5 fails, or nothing."""
    output, budget = specification.output_premetric, specification.budget
    parameter = None if output.parameter is None else float(output.parameter)
    for i, j, apart in compared(specification):
        p, q = rows[i], rows[j]
        if output.name == "trade-off":
            allowed = np.asarray(budget.value.power(LEVELS))
            if apart == 0:
                allowed = LEVELS
            elif apart != 1:
                continue
            if bool(np.any(powers(p, q) > allowed * (1 + SLACK) + 1e-9)):
                return f"'{NAMES[i]}' and '{NAMES[j]}' can be told apart with powers {powers(p, q)} above {allowed}"
            continue
        if output.name == "approximate-profile":
            for delta, epsilon in budget.value.points:
                if epsilon < math.inf and approximate(p, q, delta) > apart * epsilon * (1 + SLACK) + 1e-9:
                    return f"'{NAMES[i]}' and '{NAMES[j]}' at delta {delta}: {approximate(p, q, delta)}"
            continue
        found = divergence(output.name, parameter, p, q)
        power = 2 if output.name == "normalised-renyi" else 1
        if budget.number == math.inf:
            continue
        # Divergences here are rounded to some 1e-13, of which D_NoR is the root.
        rounding = 1e-6 if power == 2 else 1e-9
        if found > apart * float(budget.number) ** (1 / power) * (1 + SLACK) + rounding:
            return f"'{NAMES[i]}' and '{NAMES[j]}', {apart} apart, have laws {found} apart"
    return ""


def calibrated(flavor: Flavor, rows: np.ndarray) -> Specification | None:
    """The flavor at the smallest budget that these laws satisfy on the files, by the definitions here."""
    output = flavor.output_premetric
    if output.name == "trade-off":
        for mu in (0, 0.25, 0.5, 1, 2, 4):
            if not broken(flavor.at(GaussianCurve(mu)), rows):
                return flavor.at(GaussianCurve(mu))
        return None
    pairs, parameter = compared(flavor), None if output.parameter is None else float(output.parameter)

    def worst(name: str, parameter: float | None) -> float:
        told = [(divergence(name, parameter, rows[i], rows[j]), apart) for i, j, apart in pairs]
        if any(apart == 0 and found > 1e-12 for found, apart in told):
            return math.inf
        return max((found / apart for found, apart in told if apart > 0), default=0.0)

    if output.name == "approximate-profile":
        late = [(delta, worst("approximate", delta)) for delta in (0.05, 0.1)]
        if late[0][1] == math.inf:
            return None
        return flavor.at(EpsilonProfile(tuple((delta, epsilon * (1 + 1e-9)) for delta, epsilon in late)))
    found = worst(output.name, parameter) ** (2 if output.name == "normalised-renyi" else 1)
    return flavor.at(Fraction(found) * (1 + Fraction(1, 10**9))) if found < math.inf else None


def laws(case: Case) -> np.ndarray:
    """Laws on the files: any, blind to the order, a look at the number of ones or of records, or at the whole file."""
    rows = random_rows(case.random, len(NAMES), case.whole("outputs", 2, 3))
    look = case.whole("look", 0, 5)
    if look == 1:
        rows[NAMES.index("10")] = rows[NAMES.index("01")]
    elif look == 2:
        rows = rows[[name.count("1") for name in NAMES]]
    elif look == 3:
        rows = np.einsum("ij,ik->ijk", rows, np.eye(3)[[len(name) for name in NAMES]]).reshape(len(NAMES), -1)
    elif look == 4:
        rows = np.hstack([rows * 0.95, np.eye(len(NAMES)) * 0.05])
    elif look == 5:  # two laws only, as far apart as a coin can make them: the extreme mechanisms
        coin = 1 / (1 + math.exp(-case.share("odds", 0, 4)))
        side = case.random.integers(0, 2, len(NAMES))
        rows = np.where(side[:, None] == 0, [[coin, 1 - coin]], [[1 - coin, coin]])
    case.say(rows=rows.round(6).tolist())
    return rows


# -- claims --------------------------------------------------------------------------------------------------


@claim("spec", cases=1000)
def distances(case: Case) -> None:
    flavor = random_flavor(case.random)
    case.say(premetric=str(flavor.input_premetric))
    for x, y in itertools.product(NAMES, repeat=2):
        found = flavor.input_premetric.distance(FILES[x], FILES[y])
        truth = distance(flavor.input_premetric, x, y)
        case.holds(float(found) == truth, f"'{x}' and '{y}' are {truth} apart, not {found}")


@claim("spec", cases=500, counted=0.3)
def losses_of_mechanisms(case: Case) -> None:
    flavor, rows = random_flavor(case.random), laws(case)
    mechanism = FiniteMechanism(NAMES, tuple(f"t{i}" for i in range(rows.shape[1])), rows)
    exact = calibrated(flavor, rows)
    case.say(flavor=str(flavor))
    if exact is None or exact.budget.is_curve:
        for budget in budgets_like(flavor.output_premetric, Fraction(case.whole("budget", 0, 3), 2)):
            said = mechanism.satisfies(flavor.at(budget), FILES)
            if said:
                case.holds(
                    not broken(flavor.at(budget), rows), f"{broken(flavor.at(budget), rows)}; stirred says {said}"
                )
        return
    loss = mechanism.loss(flavor, FILES).value
    case.same(float(loss), float(exact.budget.number), "the loss", relative=1e-4, absolute=1e-9)  # orders on a grid
    case.at_most(float(exact.budget.number), float(loss), "the loss is not too small", relative=SLACK, absolute=1e-9)
    case.holds(
        mechanism.satisfies(flavor.at(Fraction(loss) * Fraction(1001, 1000) + Fraction(1, 10**9)), FILES), "enough"
    )


@claim("spec", cases=1000, counted=0.4)
def implications(case: Case) -> None:
    """What satisfies the first narrowly satisfies whatever the first is said to imply."""
    for _ in range(8):  # until something is implied
        implied(case)
        if case.comparisons:
            return


def implied(case: Case) -> None:
    first, second = random_pair(case.random)
    rows = laws(case)
    given = calibrated(first, rows)
    if given is None:
        return
    size = Fraction(1) if given.budget.is_curve else given.budget.number
    for factor in ("0", "1/8", "1/4", "1/2", "3/4", "1", "3/2", "2", "4", "8", "16"):
        for budget in budgets_like(second.output_premetric, size * Fraction(factor)):
            wanted = second.at(budget)
            answer = given.implies(wanted)
            if answer:
                where = broken(wanted, rows)
                case.holds(not where, f"{given}\n    is said to imply {wanted}\n    {answer}\n    but {where}")
                return


@claim("spec", cases=600, counted=0.5)
def compositions(case: Case) -> None:
    """The product of two mechanisms satisfies what their composition states."""
    for _ in range(4):  # until there is a rule
        composed(case)
        if case.comparisons:
            return


def composed(case: Case) -> None:
    first, second = random_pair(case.random)
    if case.random.random() < 0.5:
        second = first
    one, other = laws(case), laws(case)
    given = [calibrated(first, one), calibrated(second, other)]
    if given[0] is None or given[1] is None:
        return
    try:
        total = compose(given[0], given[1])
    except errors.SpecificationError:
        return  # no rule: a refusal promises nothing
    both = np.einsum("ij,ik->ijk", one, other).reshape(len(NAMES), -1)
    where = broken(total.specification, both)
    case.holds(not where, f"{total}\n    but {where}")


@claim("spec", cases=600, counted=0.4)
def conversions(case: Case) -> None:
    for _ in range(8):  # until there is a rule
        converted(case)
        if case.comparisons:
            return


def converted(case: Case) -> None:
    flavor, rows = random_flavor(case.random), laws(case)
    given = calibrated(flavor, rows)
    target = random_flavor(case.random).output_premetric
    if given is None:
        return
    found = convert(given, target)
    if found is None:
        return
    where = broken(found[0], rows)
    case.holds(not where, f"{given}\n    is converted to {found[0]}\n    but {where}")


@claim("spec", cases=700)
def worst_pairs(case: Case) -> None:
    """The largest D / d of a random mechanism, over all pairs one by one."""
    count = case.whole("datasets", 2, 6)
    rows = random_rows(case.random, count, case.whole("outputs", 2, 4))
    apart = case.random.choice([0.5, 1.0, 2.0, math.inf], (count, count))
    apart = np.minimum(apart, apart.T)
    np.fill_diagonal(apart, 0.0)
    measure = case.pick("measure", ("multiplicative", "total-variation", "normalised-renyi", "approximate", "renyi"))
    parameter = {"approximate": 0.1, "renyi": 3}.get(measure)
    case.say(rows=rows.tolist(), distances=apart.tolist())
    truth = 0.0
    for i, j in itertools.permutations(range(count), 2):
        if apart[i, j] < math.inf:
            truth = max(truth, divergence(measure, parameter, rows[i], rows[j]) / apart[i, j])
    found = worst_pair(rows, apart, measure, parameter).ratio
    case.at_most(truth, found, "the largest ratio is not too small", relative=1e-9, absolute=1e-10)
    case.at_most(found, truth, "nor too large", relative=1e-3, absolute=1e-9)  # orders on a grid


CLAIMS = (distances, losses_of_mechanisms, implications, compositions, conversions, worst_pairs)
