"""Where benchmarks leave their results: one section of RESULTS.md for each script, which replaces its own only."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import platform
import re
import subprocess
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
HEAD = "# Last results\n\nWritten by `make bench`. Ratios are within one run; seconds vary with the machine's mood.\n\n"


def machine(packages: Sequence[str]) -> str:
    """When and on what a benchmark ran, and with which versions of packages."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("stirred", *packages))
    return (
        f"{datetime.datetime.now(datetime.UTC).date()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, {versions}"
    )


def write_section(script: str, text: str, path: Path = RESULTS) -> None:
    """Replace the section of one script, or add it at the end; the others stay as they are."""
    old = path.read_text(encoding="utf-8") if path.exists() else HEAD
    title = f"## benchmarks/{Path(script).name}\n"
    section = f"{title}\n{text.strip()}\n"
    parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    kept = [part.rstrip("\n") + "\n" for part in parts]
    at = next((k for k, part in enumerate(kept) if part.startswith(title)), None)
    if at is None:
        kept.append(section)
    else:
        kept[at] = section
    path.write_text("\n".join(kept), encoding="utf-8")


def peer_python(variable: str, *packages: str) -> str:
    """An interpreter that has some packages: the one that an environment variable names, or one in the user's cache."""
    if given := os.environ.get(variable):
        return given
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stirred-benchmarks"
    folder = cache / "-".join(one.replace("==", "-") for one in packages)
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making {folder} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return str(python)


def seconds(job: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of some runs."""
    best = math.inf
    for _ in range(repeats):
        began = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - began)
    return best
