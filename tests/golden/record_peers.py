"""Ask other accounting libraries the questions of ``peers/``, in virtual environments of their own.

    python tests/golden/record_peers.py --dp-accounting PYTHON --riskcal PYTHON

PYTHON is the interpreter of an environment in which that package is installed; riskcal's also holds dp-accounting. The
questions are drawn with a fixed seed and written with the answers and versions, so that the tests need no peer. What
runs as the peer is at the end of this file and imports nothing else of the project.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "peers"
CASES = 80
EPSILONS = 6
LEVELS = [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9]
DELTAS = [1e-2, 1e-4, 1e-6, 1e-8]
STEP = 1e-4
"""The interval to which dp-accounting rounds losses, its default."""

# -- questions -----------------------------------------------------------------------------------------------


def questions() -> list[dict[str, Any]]:
    """Random compositions of one to four kinds of parts, whose losses add up to something between 0.1 and 10."""
    draw = random.Random(20)
    return [
        {"parts": [part(draw) for _ in range(draw.choice([1, 1, 2, 3, 4]))], "deltas": DELTAS, "levels": LEVELS}
        for _ in range(CASES)
    ]


def part(draw: random.Random) -> dict[str, Any]:
    count = draw.choice([1, 2, 5, 20, 100])
    root = math.sqrt(count)
    kind = draw.choice(["gaussian", "discrete gaussian", "laplace", "geometric", "randomised response", "finite"])
    if kind in ("gaussian", "discrete gaussian"):
        sigma = round(root * draw.uniform(0.7, 5), 3)
        return {"kind": kind, "sigma": sigma, "shift": draw.choice([1, 1, 2]), "count": count}
    if kind == "laplace":
        return {"kind": kind, "scale": round(root * draw.uniform(1, 5), 3), "count": count}
    if kind == "geometric":
        epsilon = round(draw.uniform(0.1, 0.7) / root, 4)
        return {"kind": kind, "epsilon": epsilon, "shift": draw.choice([1, 2, 3]), "count": count}
    if kind == "randomised response":
        epsilon = round(draw.uniform(0.2, 2) / root, 4)
        return {"kind": kind, "epsilon": epsilon, "choices": draw.choice([2, 3, 8]), "count": count}
    size = draw.randint(2, 6)
    rows = [[draw.uniform(0.5, 0.5 + 1 / root) for _ in range(size)] for _ in range(2)]
    return {"kind": kind, "p": normalised(rows[0]), "q": normalised(rows[1]), "count": count}


def normalised(row: list[float]) -> list[float]:
    return [value / sum(row) for value in row]


# -- recording -----------------------------------------------------------------------------------------------


def ask(interpreter: str, peer: str, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """What this file answers when it runs as the peer."""
    ended = subprocess.run(
        [interpreter, __file__, "--as-peer", peer], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(ended.stderr)
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dp-accounting", help="interpreter with dp-accounting installed")
    parser.add_argument("--riskcal", help="interpreter with riskcal installed")
    parser.add_argument("--as-peer", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        json.dump(PEERS[options.as_peer](json.load(sys.stdin)), sys.stdout)
        return
    HERE.mkdir(exist_ok=True)
    for peer, interpreter in (("dp-accounting", options.dp_accounting), ("riskcal", options.riskcal)):
        if interpreter:
            found = json.dumps(ask(interpreter, peer, questions()), indent=1)
            (HERE / f"{peer}.json").write_text(found + "\n", encoding="utf-8")


# -- as the peer ---------------------------------------------------------------------------------------------


def loss(part: dict[str, Any], pessimistic: bool) -> Any:
    """A part's loss as dp-accounting has it: dots connected for upper estimates, losses rounded down for lower ones."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # type: ignore[import-not-found,unused-ignore]

    rounding = {"pessimistic_estimate": pessimistic, "value_discretization_interval": STEP}
    dots = {**rounding, "use_connect_dots": pessimistic}
    kind = part["kind"]
    if kind == "gaussian":
        return pld.from_gaussian_mechanism(part["sigma"], sensitivity=part["shift"], **dots)
    if kind == "discrete gaussian":
        return pld.from_discrete_gaussian_mechanism(part["sigma"], sensitivity=part["shift"], **dots)
    if kind == "laplace":
        return pld.from_laplace_mechanism(part["scale"], **dots)
    if kind == "geometric":
        return pld.from_discrete_laplace_mechanism(part["epsilon"], sensitivity=part["shift"], **dots)
    if kind == "randomised response":
        k, odds = part["choices"], math.exp(part["epsilon"])
        return pld.from_randomized_response(k / (odds + k - 1), k, **rounding)
    p, q = ({i: math.log(value) for i, value in enumerate(part[name])} for name in "pq")
    return pld.from_two_probability_mass_functions(q, p, symmetric=False, **rounding)


def composed(parts: list[dict[str, Any]], pessimistic: bool) -> Any:
    total = None
    for part in parts:
        found = loss(part, pessimistic).self_compose(part["count"])
        total = found if total is None else total.compose(found)
    return total


def answers_of_dp_accounting(asked: list[dict[str, Any]]) -> dict[str, Any]:
    answers = []
    for question in asked:
        low, high = (composed(question["parts"], pessimistic) for pessimistic in (False, True))
        epsilons = [high.get_epsilon_for_delta(delta) for delta in question["deltas"]]
        places = [round(epsilons[-1] * k / EPSILONS, 3) for k in range(EPSILONS)]
        answers.append(
            {
                "lower epsilons": [low.get_epsilon_for_delta(delta) for delta in question["deltas"]],
                "upper epsilons": epsilons,
                "epsilons": places,
                "lower deltas": [float(low.get_delta_for_epsilon(epsilon)) for epsilon in places],
                "upper deltas": [float(high.get_delta_for_epsilon(epsilon)) for epsilon in places],
            }
        )
    return told("dp-accounting", asked, answers)


def answers_of_riskcal(asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Type II errors of tests, by riskcal, from dp-accounting's upper estimates of symmetric losses."""
    from riskcal.analysis import get_beta_from_pld  # type: ignore[import-not-found,unused-ignore]

    symmetric = [question for question in asked if all(part["kind"] != "finite" for part in question["parts"])]
    answers = []
    for question in symmetric:
        total = composed(question["parts"], True)
        answers.append({"errors": [float(get_beta_from_pld(total, alpha=level)) for level in question["levels"]]})
    return told("riskcal", symmetric, answers)


def told(package: str, asked: list[dict[str, Any]], answers: list[dict[str, Any]]) -> dict[str, Any]:
    packages = {name: version(name) for name in dict.fromkeys([package, "dp-accounting", "numpy", "scipy"])}
    cases = [{**question, **answer} for question, answer in zip(asked, answers, strict=True)]
    return {"versions": packages, "step": STEP, "cases": cases}


PEERS = {"dp-accounting": answers_of_dp_accounting, "riskcal": answers_of_riskcal}

if __name__ == "__main__":
    main()
