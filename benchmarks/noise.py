"""Exact integer noise beside OpenDP, which is exact too, and NumPy, which is neither exact nor secure.

Discrete Gaussian and Laplace with one scale, and ten million different scales in one call. All draws come from the
operating system's generator and land in a fresh array. OpenDP runs in a virtual environment of its own, since its pins
should not meet ours: that of the interpreter named in STIRRED_BENCH_OPENDP, or one made in the user's cache folder on
first use. With a scale for each draw it makes one measurement for each, which is what its interface offers. Rounds of
all contestants follow each other, and the best of each counts.

    python benchmarks/noise.py             some minutes; rewrites its section of RESULTS.md
    python benchmarks/noise.py --keep      print only
    python benchmarks/noise.py --rounds 9  more rounds, for a busy machine
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from results import machine, write_section
from stirred._threads import thread_count, use_threads
from stirred.noise import (
    SystemSource,
    discrete_gaussian,
    discrete_gaussian_each,
    discrete_laplace,
    discrete_laplace_each,
)

OPENDP = "opendp==0.16.0"
SCALES = [1, 10, 100, 1_000_000]
DRAWS, ROWS = 4_000_000, 10_000_000
LARGEST = 900_000
"""Of different scales, so that numerators of variances stay within 64 bits."""

THEIR_JOB = """
import importlib.metadata, json, sys, time
import opendp.prelude as dp

dp.enable_features("contrib")
rates = {"version": importlib.metadata.version("opendp")}
for law, make, metric in (
    ("gaussian", dp.m.make_gaussian, dp.l2_distance(T=float)),
    ("laplace", dp.m.make_laplace, dp.l1_distance(T=int)),
):
    for scale in json.loads(sys.argv[1]):
        measurement = make(dp.vector_domain(dp.atom_domain(T=int)), metric, float(scale))
        began = time.perf_counter()
        measurement([0] * 20_000)
        rates[f"{law} {scale}"] = 20_000 / (time.perf_counter() - began)
    one = dp.atom_domain(T=int), dp.absolute_distance(T=float if law == "gaussian" else int)
    began = time.perf_counter()
    for i in range(1_000):
        make(*one, 1 + i * 997.3)(0)
    rates[f"{law} each"] = 1_000 / (time.perf_counter() - began)
print(json.dumps(rates))
"""


def opendp_python() -> str:
    """An interpreter that has OpenDP."""
    if given := os.environ.get("STIRRED_BENCH_OPENDP"):
        return given
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stirred-benchmarks"
    folder = cache / OPENDP.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making {folder} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", OPENDP], check=True)
        (folder / "ready").touch()
    return str(python)


def theirs(python: str) -> dict[str, Any]:
    done = subprocess.run([python, "-c", THEIR_JOB, json.dumps(SCALES)], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def rate(draw: Callable[[], object], draws: int, threads: int) -> float:
    """Draws a second."""
    use_threads(threads)
    began = time.perf_counter()
    draw()
    return draws / (time.perf_counter() - began)


def jobs() -> dict[str, tuple[Callable[[], object], int]]:
    """What we draw, and how many of them."""
    source = SystemSource()
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for scale in SCALES:
        found[f"gaussian {scale}"] = (lambda s=scale: discrete_gaussian(s * s, DRAWS, source)), DRAWS
        found[f"laplace {scale}"] = (lambda s=scale: discrete_laplace(s, DRAWS, source)), DRAWS
    generator = np.random.default_rng(1)
    sigmas = np.exp(generator.uniform(0, np.log(LARGEST), ROWS))
    bottoms = np.arange(1, ROWS + 1)
    variances, scales = (np.maximum(1, powers * bottoms).astype(np.int64) for powers in (sigmas**2, sigmas))
    assert len(np.unique(scales / bottoms)) > 0.99 * ROWS
    found["gaussian each"] = (lambda: discrete_gaussian_each((variances, bottoms), source)), ROWS
    found["laplace each"] = (lambda: discrete_laplace_each((scales, bottoms), source)), ROWS
    found["numpy gaussian"] = (lambda: generator.normal(0, 1e6, DRAWS)), DRAWS
    found["numpy laplace"] = (lambda: generator.laplace(0, 1e6, DRAWS)), DRAWS
    return found


def set_up_times() -> list[str]:
    """Seconds until the first draw with a scale that was not used before; kernels are compiled by then."""
    source, lines = SystemSource(), []
    for law, draw, values in (
        ("gaussian", discrete_gaussian, [(s * s + Fraction(1, 7)) for s in (*SCALES[:3], 1000, SCALES[3])]),
        ("laplace", discrete_laplace, [(s + Fraction(1, 7)) for s in SCALES]),
    ):
        times = []
        for value in values:
            began = time.perf_counter()
            draw(value, 1, source)
            times.append(f"{(time.perf_counter() - began) * 1e3:.0f}")
        lines.append(f"{law} {', '.join(times)} ms")
    return lines


def bench(rounds: int) -> tuple[list[str], str]:
    python, ours, cores = opendp_python(), jobs(), thread_count()
    for draw, _ in ours.values():  # compile, and make tables
        draw()
    best: dict[tuple[str, int], float] = {}
    peer: dict[str, Any] = {}
    for number in range(rounds):
        for name, found in theirs(python).items():
            peer[name] = max(peer.get(name, found), found)
        for name, (draw, draws) in ours.items():
            for threads in {1, cores}:
                key = name, threads
                best[key] = max(best.get(key, 0.0), rate(draw, draws, threads))
        print(f"round {number + 1} of {rounds}", flush=True)
    lines = [
        f"| law | scale | OpenDP {peer['version']} | stirred, 1 thread | stirred, {cores} threads | times OpenDP | "
        "times NumPy |",
        "|---|---|---|---|---|---|---|",
    ]
    for law in ("gaussian", "laplace"):
        for scale in (*SCALES, "each"):
            name = f"{law} {scale}"
            fast = best[name, cores]
            said = f"{ROWS:,} different" if scale == "each" else f"{scale:,}"
            numpy = "" if scale == "each" else f"{fast / best[f'numpy {law}', 1]:.2f}"
            lines.append(
                f"| {law} | {said} | {peer[name]:,.0f} | {best[name, 1] / 1e6:.1f} M | {fast / 1e6:.1f} M | "
                f"{fast / peer[name]:,.0f} | {numpy} |"
            )
    numpys = ", ".join(f"{law} {best[f'numpy {law}', 1] / 1e6:.1f} M" for law in ("gaussian", "laplace"))
    return lines, f"NumPy's float generators, one thread: {numpys} a second. Set-up: {'; '.join(set_up_times())}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    lines, more = bench(options.rounds)
    print("\n".join(lines), more, sep="\n\n")
    if not options.keep:
        write_section(
            __file__,
            f"{machine(['numpy', 'numba'])}\n\nDraws a second, best of {options.rounds} rounds, {DRAWS:,} draws in a "
            f"call. Gaussian scales are standard deviations. Different scales: from 1 to {LARGEST:,}, one draw each; "
            "OpenDP makes one measurement for each of 1,000 scales there.\n\n" + "\n".join(lines) + f"\n\n{more}",
        )


if __name__ == "__main__":
    main()
