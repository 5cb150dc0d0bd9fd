"""Composition of privacy losses beside dp-accounting, riskcal and OpenDP: the same questions, time and tightness.

Each question names a composition and a number asked for. A peer answers it with its own settings for about the same
accuracy; it runs in an environment of its own, whose interpreter is told, and is timed there, without imports. Ours is
a pair of bounds, so its width is known; of a peer's answer only what our bounds say about it.

    python benchmarks/accounting.py --dp-accounting PYTHON --riskcal PYTHON --opendp PYTHON
    python benchmarks/accounting.py --keep          print only; peers that are not told are left out

To add a question, add a function to OURS and, under the same name, to the peers that can answer it. A question about
curves, such as the trade-off curve of zCDP, belongs to the list CURVES, whose answers are powers at LEVELS.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

ALLOCATION = Path(__file__).parents[1] / "src" / "stirred" / "deployments" / "allocations-2020.toml"
"""Read as a file, since peers run where stirred is not installed."""
DELTA = 1e-10
LEVELS = [0.01, 0.05, 0.1]
COUNT = 1000
STEP = 1e-4
"""The interval to which dp-accounting rounds losses, its default."""

QUESTIONS = {
    "census": f"142 discrete Gaussians of the 2020 redistricting data, epsilon at {DELTA:g}",
    "gaussian": f"{COUNT} Gaussians of variance 100, epsilon at {DELTA:g}",
    "discrete gaussian": f"{COUNT} discrete Gaussians of variance 100, epsilon at {DELTA:g}",
    "response": f"{COUNT} randomised responses of epsilon 0.1, epsilon at {DELTA:g}",
    "laplace": f"{COUNT} Laplace noises of scale 10, epsilon at {DELTA:g}",
    "mixed": f"100 Laplace noises of scale 10 and 100 randomised responses of epsilon 0.07, epsilon at {DELTA:g}",
    "census power": "142 discrete Gaussians, power at the level 0.05",
    "gaussian power": f"{COUNT} Gaussians of variance 100, power at the level 0.05",
}
COARSE = {"census": 0.002, "laplace": 0.004, "mixed": 0.01}
"""Grids for which our bounds are about as far apart as dp-accounting's upper and lower estimates, or nearer."""

CURVES: list[str] = []
"""Questions whose answers are whole curves."""


def variances() -> list[tuple[Fraction, int]]:
    """The coordinates of the 2020 redistricting data: equal variances once, with how many there are."""
    told = tomllib.loads(ALLOCATION.read_text(encoding="utf-8"))["allocation"][0]
    found: dict[Fraction, int] = {}
    for part in told["part"]:
        for query in part["query"]:
            for level_share, share in zip(part["level_shares"], query["shares"], strict=True):
                if rho := Fraction(part["rounded"]) * Fraction(level_share) * Fraction(share):
                    found[1 / rho] = found.get(1 / rho, 0) + 2
    return list(found.items())


# -- ours ----------------------------------------------------------------------------------------------------


def ours(grids: dict[str, float]) -> dict[str, Callable[[], tuple[float, float]]]:
    """Bounds on what is asked, on the grids told, else on those chosen."""
    from stirred.loss import compose, discrete_gaussian, gaussian, laplace, randomised_response

    def census() -> list[Any]:
        return [(discrete_gaussian(variance), count) for variance, count in variances()]

    return {
        "census": lambda: compose(census(), grid=grids.get("census")).epsilon(DELTA),
        "gaussian": lambda: compose([(gaussian(100), COUNT)]).epsilon(DELTA),
        "discrete gaussian": lambda: compose([(discrete_gaussian(100), COUNT)]).epsilon(DELTA),
        "response": lambda: compose([(randomised_response(0.1), COUNT)]).epsilon(DELTA),
        "laplace": lambda: compose([(laplace(10), COUNT)], grid=grids.get("laplace")).epsilon(DELTA),
        "mixed": lambda: compose(
            [(laplace(10), 100), (randomised_response(0.07), 100)], grid=grids.get("mixed")
        ).epsilon(DELTA),
        "census power": lambda: compose(census()).power(0.05),
        "gaussian power": lambda: compose([(gaussian(100), COUNT)]).power(0.05),
    }


# -- peers ---------------------------------------------------------------------------------------------------


def dp_accounting(pessimistic: bool) -> dict[str, Callable[[], Any]]:
    """Losses as dp-accounting composes them, rounded up with connected dots, or down."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # type: ignore[import-not-found,unused-ignore]

    rounding = {"pessimistic_estimate": pessimistic, "value_discretization_interval": STEP}
    dots = {**rounding, "use_connect_dots": pessimistic}

    def response(epsilon: float) -> Any:
        return pld.from_randomized_response(2 / (math.exp(epsilon) + 1), 2, **rounding)

    def census() -> Any:
        total = None
        for variance, count in variances():
            one = pld.from_discrete_gaussian_mechanism(math.sqrt(variance), **dots).self_compose(count)
            total = one if total is None else total.compose(one)
        return total

    def mixed() -> Any:
        noise = pld.from_laplace_mechanism(10, **dots).self_compose(100)
        return noise.compose(response(0.07).self_compose(100))

    return {
        "census": census,
        "gaussian": lambda: pld.from_gaussian_mechanism(10 / math.sqrt(COUNT), **dots),
        "discrete gaussian": lambda: pld.from_discrete_gaussian_mechanism(10, **dots).self_compose(COUNT),
        "response": lambda: response(0.1).self_compose(COUNT),
        "laplace": lambda: pld.from_laplace_mechanism(10, **dots).self_compose(COUNT),
        "mixed": mixed,
    }


def by_dp_accounting() -> dict[str, Callable[[], float]]:
    losses = dp_accounting(True)
    return {name: lambda loss=loss: float(loss().get_epsilon_for_delta(DELTA)) for name, loss in losses.items()}


def by_dp_accounting_below() -> dict[str, Callable[[], float]]:
    losses = dp_accounting(False)
    return {name: lambda loss=loss: float(loss().get_epsilon_for_delta(DELTA)) for name, loss in losses.items()}


def by_riskcal() -> dict[str, Callable[[], float]]:
    from riskcal.analysis import get_beta_from_pld  # type: ignore[import-not-found,unused-ignore]

    losses = dp_accounting(True)
    return {
        f"{name} power": lambda loss=losses[name]: 1 - float(get_beta_from_pld(loss(), alpha=0.05))  # type: ignore[misc]
        for name in ("census", "gaussian")
    }


def by_opendp() -> dict[str, Callable[[], float]]:
    """OpenDP composes zCDP and converts: an answer to a coarser question, that of the worst mechanism with this rho."""
    import opendp.prelude as dp  # type: ignore[import-not-found,unused-ignore]

    dp.enable_features("contrib")

    def epsilon(noises: list[tuple[float, int]]) -> float:
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        parts = [dp.m.make_gaussian(*space, scale) for scale, count in noises for _ in range(count)]
        return float(dp.c.make_zCDP_to_approxDP(dp.c.make_composition(parts)).map(1).epsilon(DELTA))

    return {
        "census": lambda: epsilon([(math.sqrt(variance), count) for variance, count in variances()]),
        "discrete gaussian": lambda: epsilon([(10.0, COUNT)]),
    }


PEERS = {
    "dp-accounting": (by_dp_accounting, "dp_accounting", "dp-accounting"),
    "dp-accounting, below": (by_dp_accounting_below, "dp_accounting", "dp-accounting"),
    "riskcal": (by_riskcal, "riskcal", "riskcal"),
    "opendp": (by_opendp, "opendp", "opendp"),
}


def best(job: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """The answer and the shortest of some times, after a first run that compiles and fills caches."""
    answer = job()
    seconds = math.inf
    for _ in range(repeats):
        began = time.perf_counter()
        answer = job()
        seconds = min(seconds, time.perf_counter() - began)
    return answer, seconds


def as_peer(name: str) -> None:
    make, _, package = PEERS[name]
    found: dict[str, Any] = {"version": version(package), "answers": {}}
    for question, job in make().items():
        try:
            found["answers"][question] = best(job, 2)
        except Exception as refusal:  # a peer that cannot answer is told as such
            print(f"{name}, {question}: {refusal}", file=sys.stderr)
    json.dump(found, sys.stdout)


# -- side by side --------------------------------------------------------------------------------------------


def asked(interpreters: dict[str, str | None]) -> dict[str, dict[str, Any]]:
    answers = {}
    for name, (_, module, _) in PEERS.items():
        if interpreter := interpreters[module]:
            command = [interpreter, __file__, "--as-peer", name]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            answers[name] = json.loads(ended.stdout)
    return answers


def bench(answers: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| question | by | answer | width or excess | seconds |", "|---|---|---|---|---|"]
    coarser = ours(COARSE)
    for question, job in ours({}).items():
        (low, high), seconds = best(job)
        said = f"{low:.9g} to {high:.9g}"
        lines.append(f"| {QUESTIONS[question]} | stirred | {said} | width {high - low:.1e} | {seconds:.3f} |")
        print(lines[-1], flush=True)
        if step := COARSE.get(question):
            (below, above), taken = best(coarser[question])
            said = f"{below:.9g} to {above:.9g}"
            lines.append(f"| | stirred, grid {step:g} | {said} | width {above - below:.1e} | {taken:.3f} |")
            print(lines[-1], flush=True)
        for name, found in answers.items():
            if question in found["answers"]:
                answer, taken = found["answers"][question]
                if low <= answer <= high:
                    excess = "within ours"
                else:
                    excess = (
                        f"above ours by {answer - high:.1e}" if answer > high else f"below ours by {low - answer:.1e}"
                    )
                lines.append(f"| | {name} | {answer:.9g} | {excess} | {taken:.3f} |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    parser.add_argument("--dp-accounting", help="interpreter with dp-accounting installed")
    parser.add_argument("--riskcal", help="interpreter with riskcal installed")
    parser.add_argument("--opendp", help="interpreter with opendp installed")
    parser.add_argument("--as-peer", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        as_peer(options.as_peer)
        return
    answers = asked({name: getattr(options, name) for name in ("dp_accounting", "riskcal", "opendp")})
    lines = bench(answers)
    if not options.keep:
        from results import machine, write_section

        peers = ", ".join(f"{name} {found['version']}" for name, found in answers.items() if "," not in name)
        write_section(
            __file__,
            f"{machine(['numpy', 'scipy', 'numba'])}; peers in environments of their own: {peers}\n\n"
            "Epsilon or power of composed mechanisms. Ours are bounds; the truth lies between. Losses are rounded "
            f"by dp-accounting to a step of {STEP:g}, up, or *below*, down; riskcal reads its curves. OpenDP converts "
            "the sum of rho: a bound for any mechanism that has it.\n\n" + "\n".join(lines),
        )


if __name__ == "__main__":
    main()
