"""Runs the referee with any seed and prints a table: ``make referee``, ``make referee SEED=5 CASE=loss/renyi:17``.

The seed is that of STIRRED_REFEREE_SEED, or a new one; it is printed first. Two processes share the cases.
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # two processes, small matrices

from referee_claims import CLAIMS  # noqa: E402
from referee_harness import ROOMS, Claim, Outcome, judge  # noqa: E402

PIECES = 6
"""Of each claim, so that two processes end at about the same time."""


def chunks(cases: int, pieces: int = PIECES) -> list[range]:
    """All cases, in order, in pieces of about one size."""
    edges = [cases * piece // pieces for piece in range(pieces + 1)]
    return [range(low, high) for low, high in itertools.pairwise(edges) if low < high]


def asked(case: str) -> list[tuple[Claim, range]]:
    """The claims and cases that are asked for: all, a room's, one claim's, or one case."""
    key, _, number = case.partition(":")
    found = [one for one in CLAIMS if key in ("", one.room, one.key)]
    if not found:
        sys.exit(f"There is no claim or room '{key}'. Claims: {', '.join(one.key for one in CLAIMS)}")
    return [(one, range(int(number), int(number) + 1) if number else range(one.cases)) for one in found]


def table(outcomes: list[Outcome]) -> str:
    """Room, cases that compared something, comparisons, violations, and seconds of processor time."""
    lines = [f"{'room':<12}{'cases':>9}{'comparisons':>14}{'violations':>13}{'seconds':>10}"]
    for room in [*ROOMS, "all"]:
        told = [outcome for outcome in outcomes if room in ("all", outcome.room)]
        if not told:
            continue
        cases, compared = sum(one.counted for one in told), sum(one.comparisons for one in told)
        violations, seconds = sum(len(one.violations) for one in told), sum(one.seconds for one in told)
        lines.append(f"{room:<12}{cases:>9,}{compared:>14,}{violations:>13,}{seconds:>10.1f}")
    return "\n".join(lines)


def _judged(key: str, seed: int, numbers: range) -> Outcome:
    return judge(next(one for one in CLAIMS if one.key == key), seed, numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", default="", help="a room, a claim, or a claim and the number of a case")
    parser.add_argument("--every", type=int, default=1, help="only every N-th case, where time is short")
    parser.add_argument("--claims", action="store_true", help="print a line for each claim too")
    options = parser.parse_args()
    seed = int(os.environ.get("STIRRED_REFEREE_SEED") or secrets.randbelow(10**9))
    print(f"seed {seed}", flush=True)
    begun, outcomes = time.perf_counter(), []
    chosen = [(one, numbers[:: options.every]) for one, numbers in asked(options.case)]
    with ProcessPoolExecutor(2) as pool:
        waiting = [
            pool.submit(_judged, one.key, seed, numbers[piece.start : piece.stop])
            for one, numbers in chosen
            for piece in chunks(len(numbers))
        ]
        for done in as_completed(waiting):
            outcomes.append(done.result())
            for violation in outcomes[-1].violations:
                print(violation, flush=True)
    empty = []
    for one, numbers in chosen:
        told = [outcome for outcome in outcomes if outcome.name == one.name and outcome.room == one.room]
        counted = sum(outcome.counted for outcome in told)
        if options.claims:
            seconds, wrong = sum(each.seconds for each in told), sum(len(each.violations) for each in told)
            print(f"{one.key:<48}{counted:>7,} of {len(numbers):>6,}{wrong:>6} violations{seconds:>8.1f} s")
        if len(numbers) == one.cases and counted < one.counted * one.cases:
            empty.append(f"{one.key} compared something in {counted} of {one.cases} cases only")
    print(table(outcomes))
    print(f"{time.perf_counter() - begun:.0f} seconds, seed {seed}")
    print("\n".join(empty), end="\n" if empty else "")
    sys.exit(1 if empty or any(outcome.violations for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
