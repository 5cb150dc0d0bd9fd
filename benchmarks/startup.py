"""How long a person waits for commands that compute little: processor time from start to end.

Each command runs in a process of its own, with compiled files and kernels in their caches; the shortest of some runs
counts. Beside it how many times the start of Python itself that is.

    python benchmarks/startup.py             half a minute; rewrites its section of RESULTS.md
    python benchmarks/startup.py --keep      print only
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys

from results import machine, write_section

COMMANDS = (
    ("--help",),
    ("deployments",),
    ("compare", "das-2020-overall", "psa-2020-county-tract-p05"),
    ("lint", "das-2020"),
    ("explain", "rho=2.63"),
    ("explain", "topdown-2020-pl"),
    ("limits", "--epsilon", "1", "--records", "1000"),
)
RUN = "from stirred.cli.app import main; main()"


def processor_seconds(code: str, *words: str, repeats: int = 5) -> float:
    """Processor time of ``python -c code words``, the shortest of some runs."""
    best = math.inf
    for _ in range(repeats):
        before = _spent()
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
        best = min(best, _spent() - before)
    return best


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true")
    arguments = options.parse_args()
    nothing = processor_seconds("pass")
    measured = {"import stirred": processor_seconds("import stirred")}
    measured |= {f"stirred {' '.join(words)}": processor_seconds(RUN, *words) for words in COMMANDS}
    rows = "\n".join(f"| `{name}` | {took:.2f} | {took / nothing:.0f} |" for name, took in measured.items())
    text = f"""{machine(["numpy", "scipy", "pydantic", "typer"])}

| | seconds of processor time | times `python -c pass` ({nothing:.3f} s) |
|---|---|---|
{rows}
"""
    print(text)
    if not arguments.keep:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
