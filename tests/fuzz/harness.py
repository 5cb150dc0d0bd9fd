"""Runs commands on damaged inputs, in this process, and says what went wrong: a fault, a hang, a marker, a leftover.

Every case is named by its kind and its number, and is the same in every run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mutators
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer.main
from mutators import MARKER

from stirred.cli import app
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest

SEED = 20261117
SECONDS = 20
"""What one command may take; a hang in a library's own code ends the process after three times as long."""
FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1"
DOCUMENTED = (app.FINE, app.VERDICT, app.REFUSED)
OPEN = (4, 5)
"""What ``verify`` may end with besides: not everything was compared, or it could not be checked."""
CONFIDENTIAL = ("check", "tabulate")
"""Commands whose page shows values: a check's is confidential and says so, and a table is made of released cells."""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")


class Hung(BaseException):
    """A command took too long."""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@dataclass
class Runner:
    """Runs ``stirred`` in this process; the commands are put together once."""

    command: Any = field(default_factory=lambda: typer.main.get_command(app.build()))

    def run(self, *words: object) -> Ended:
        """One command, with a watchdog."""
        before, argv = signal.signal(signal.SIGALRM, _hung), sys.argv
        build, app.build = app.build, lambda *_: self.command
        out, err = io.StringIO(), io.StringIO()
        faulthandler.dump_traceback_later(3 * SECONDS, exit=True, file=sys.__stderr__)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        sys.argv = ["stirred", *map(str, words)]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    app.main()
                except SystemExit as ending:
                    code = int(ending.code or 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
            sys.argv, app.build = argv, build
        return Ended(code, out.getvalue(), err.getvalue())


def _hung(*_: object) -> None:
    raise Hung


# -- inputs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One kind of input: which files may be damaged, how, and which commands read them."""

    name: str
    folder: str
    """The folder, below the prepared ones, that a case works in a copy of."""
    files: tuple[str, ...]
    """Patterns of the files that may be damaged."""
    damage: Callable[[bytes, random.Random], bytes]
    commands: tuple[tuple[str, ...], ...]
    """Commands to run, one chosen for each case; ``@`` is the case's folder."""
    agree: bool = False
    """Whether the manifest is made to agree with the damage."""
    writes: bool = False
    """Whether the command may leave a new folder ``out``, whole or not at all."""


def _toml(data: bytes, chance: random.Random) -> bytes:
    return mutators.by_text(data, chance, mutators.with_line(mutators.TOML_LINES))


def _yaml(data: bytes, chance: random.Random) -> bytes:
    return mutators.by_text(data, chance, mutators.with_line(mutators.YAML_LINES))


def _any(data: bytes, chance: random.Random) -> bytes:
    """Damage that fits what the bytes look like."""
    if data[:1] in b"{[":
        return mutators.by_json(data, chance)
    return mutators.by_bytes(data, chance)


SWAP_CHECK = (
    ("check", "@/swap.toml"),
    ("check", "@/swap.toml", "--json"),
    ("release", "@/swap.toml", "--out", "@/out"),
)
SURVEY_CHECK = (
    ("check", "@/survey.toml"),
    ("check", "@/survey.toml", "--json"),
    ("release", "@/survey.toml", "--out", "@/out"),
)
SURVEY_RECEIVED = (
    ("estimate", "@", "--by", "county"),
    ("estimate", "@", "--by", "county", "--of", "income"),
    ("estimate", "@", "--share", "sex"),
    ("explain", "@"),
)
RECEIVED = ("verify", "@"), ("verify", "@", "--json"), ("lint", "@"), ("tabulate", "@", "--by", "county")
KINDS = (
    Kind("swap plans", "data", ("swap.toml",), _toml, SWAP_CHECK, writes=True),
    Kind("topdown plans", "data", ("topdown.toml",), _toml, (("check", "@/topdown.toml"),)),
    Kind("csv for swap", "data", ("households.csv", "persons.csv"), mutators.by_cells, SWAP_CHECK, writes=True),
    Kind("csv for topdown", "data", ("people.csv", "blocks.csv"), mutators.by_cells, (("check", "@/topdown.toml"),)),
    Kind("parquet", "columnar", ("households.parquet",), mutators.by_bytes,
         (("check", "@/parquet.toml"), ("init", "@/households.parquet"))),
    Kind("arrow", "columnar", ("households.arrow",), mutators.by_bytes,
         (("check", "@/arrow.toml"), ("init", "@/households.arrow"))),
    Kind("specifications", "texts", ("specification.json",), mutators.by_json,
         (("lint", "@/specification.json"), ("lint", "@/specification.json", "--json"),
          ("compare", "@/specification.json", "rho=1"), ("explain", "@/specification.json"))),
    Kind("registry records", "texts", ("record.yaml",), _yaml,
         (("registry", "import", "@/record.yaml"), ("lint", "@/record.yaml"))),
    Kind("allocations", "texts", ("allocation.toml",), _toml,
         (("explain", "rho=1", "--allocation", "@/allocation.toml"),)),
    Kind("swap folders", "swap", ("*",), _any, RECEIVED),
    Kind("swap folders that agree", "swap", ("*",), _any, RECEIVED, agree=True),
    Kind("topdown folders", "topdown", ("*", "*/*"), _any, RECEIVED),
    Kind("topdown folders that agree", "topdown", ("*", "*/*"), _any,
         (*RECEIVED, ("estimate", "@", "--level", "county"), ("explain", "@")), agree=True),
    Kind("survey plans", "surveys", ("survey.toml",), _toml, SURVEY_CHECK, writes=True),
    Kind("csv for survey", "surveys", ("survey.csv",), mutators.by_cells, SURVEY_CHECK, writes=True),
    Kind("survey folders", "survey", ("*", "*/*"), _any, RECEIVED),
    Kind("survey folders that agree", "survey", ("*", "*/*"), _any, (*RECEIVED, *SURVEY_RECEIVED), agree=True),
    Kind("survey tables", "survey", ("*.csv", "tables/*"), mutators.by_cells, (*RECEIVED, *SURVEY_RECEIVED),
         agree=True),
    Kind("survey certificates", "survey", ("certificate.json",), mutators.by_fields, (*RECEIVED, *SURVEY_RECEIVED),
         agree=True),
    Kind("certificates", "swap", ("certificate.json",), mutators.by_fields, RECEIVED, agree=True),
    Kind("data dictionaries", "swap", ("data_dictionary.json",), mutators.by_fields, RECEIVED, agree=True),
    Kind("manifests", "swap", ("manifest.json",), mutators.by_json, RECEIVED),
    Kind("ledgers", "data", ("swap.ledger",), mutators.by_bytes,
         (("ledger", "list", "@/swap.ledger"), ("ledger", "verify", "@/swap.ledger"),
          ("ledger", "total", "@/swap.ledger"))),
    Kind("work folders", "drawn", ("work/*", "work/*/*"), _any,
         (("release", "@/topdown.toml", "--work", "@/work", "--out", "@/out"),), writes=True),
    Kind("work folders that agree", "drawn", ("work/*", "work/*/*"), _any,
         (("release", "@/topdown.toml", "--work", "@/work", "--out", "@/out"),), agree=True, writes=True),
)  # fmt: skip


def prepared(folder: Path) -> None:
    """The undamaged inputs: plans with their data, releases, a work folder, a ledger, documents."""
    runner = Runner()
    data = Path(shutil.copytree(FIXTURES, folder / "data"))
    for name in ("swap", "topdown", "work"):
        shutil.rmtree(data / name)
    for name in ("households.csv", "persons.csv"):
        _with_markers(data / name)
    drawn = Path(shutil.copytree(data, folder / "drawn"))
    for words in (
        ("release", data / "swap.toml", "--out", folder / "swap"),
        ("release", drawn / "topdown.toml", "--work", drawn / "work", "--out", folder / "topdown"),
    ):
        ended = runner.run(*words)
        assert ended.code == 0, ended.err
    surveys = folder / "surveys"
    surveys.mkdir()
    (surveys / "survey.toml").write_text(SURVEY_PLAN, encoding="utf-8")
    rows = [f"{1 + i % 7 / 2},{'ab'[i % 2]},{'fm '[i % 3].strip()},{MARKER if i % 10 == 0 else 'x'},{i % 10},{i}"
            for i in range(60)]  # fmt: skip
    text = "\n".join(["w,county,sex,word,income,cluster", *rows]) + "\n"
    (surveys / "survey.csv").write_text(text, encoding="utf-8")
    ended = runner.run("release", surveys / "survey.toml", "--out", folder / "survey")
    assert ended.code == 0, ended.err
    columnar, texts = folder / "columnar", folder / "texts"
    columnar.mkdir(), texts.mkdir()
    table = pa.csv.read_csv(data / "households.csv")
    pq.write_table(table, columnar / "households.parquet", row_group_size=50)
    coded = table.set_column(3, "tenure", table["tenure"].dictionary_encode())
    with pa.OSFile(str(columnar / "households.arrow"), "wb") as file, pa.ipc.new_file(file, coded.schema) as writer:
        writer.write_table(coded.unify_dictionaries(), max_chunksize=50)
    for form in ("parquet", "arrow"):
        (columnar / f"{form}.toml").write_text(
            'stirred = 1\nmechanism = "swap"\nrate = 0.1\nmatch = ["size"]\nswap = ["county"]\nhold = ["tenure"]\n'
            f'id = "serial"\n[input]\npath = "households.{form}"\n',
            encoding="utf-8",
        )
    shutil.copy(folder / "swap" / "specification.json", texts / "specification.json")
    exported = runner.run(
        "registry", "export", folder / "topdown", "--name", "n", "--author", "a", "--curator", "c",
        "--use", "u", "--region", "r", "--date", "2030-01-01", "--type", "Dataset", "--description", "d",
    )  # fmt: skip
    assert exported.code == 0, exported.err
    (texts / "record.yaml").write_text(exported.out, encoding="utf-8")
    (texts / "allocation.toml").write_text(ALLOCATION, encoding="utf-8")


SURVEY_PLAN = f"""stirred = 1
mechanism = "survey"
dataset = "a survey"
row = "person"
unit = "person"
epsilon = 5
starts = "target sample"
holds_fixed = "frame"
queries = [{{ by = ["county", "sex"] }}, {{ of = "income", by = ["county"], share = "1/5" }}, {{ by = ["word"] }}]

[input]
path = "survey.csv"
types = {{ w = "number", income = "integer" }}

[weights]
column = "w"
lower = 1
upper = 4
step = 0.5

[sample]
fewest = 10
most = 100

[design]
strata = "county"
clusters = "cluster"
sizes = {{ a = {{ selected = 30, population = 100, lower = 1, upper = 4 }}, b = {{ selected = 30 }} }}

[[attributes]]
name = "county"
values = ["a", "b"]
in_frame = true

[[attributes]]
name = "sex"
values = ["f", "m"]

[[attributes]]
name = "word"
values = ["x", "{MARKER}"]

[[attributes]]
name = "band"
variable = "income"
cuts = [0, 5, 10]

[[variables]]
name = "income"
lower = 0
upper = 10

[[imputation]]
of = "sex"
kind = "frequencies"
given = ["county"]
share = "1/10"

[[calibrations]]
name = "known"
method = "raked"
margins = [{{ by = ["sex"], totals = [70, 70] }}, {{ by = ["county"], totals = [60, 80] }}]

[[publish]]
kind = "mean"
of = "income"
by = ["county"]
errors = "1/10"

[[publish]]
kind = "proportion"
of = "sex"
by = ["county"]

[[publish]]
kind = "count"
by = ["county"]
calibration = "known"
"""
ALLOCATION = """levels = ["county", "block"]
[[part]]
unit = "person"
rho = "1"
level_shares = ["1/2", "1/2"]
[[part.query]]
name = "total"
attributes = []
shares = ["1/2", "1/3"]
[[part.query]]
name = "race"
attributes = ["race"]
shares = ["1/2", "2/3"]
"""


def _with_markers(path: Path) -> None:
    """Every tenth row with the marker in its last text column, which is held or copied."""
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    at = header.split(",").index("tenure" if "tenure" in header else "sex")
    cells = [row.split(",") for row in rows]
    for row in cells[::10]:
        row[at] = MARKER
    path.write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n", encoding="utf-8")


# -- cases -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """What was wrong with one case."""

    case: str
    words: str


class Cases:
    """Damages copies of prepared folders one after another, and puts each folder back as it was."""

    def __init__(self, base: Path, place: Path) -> None:
        self._runner, self._base, self._place = Runner(), base, place
        self._pristine: dict[str, dict[str, bytes]] = {}

    def problems(self, kind: Kind, numbers: range) -> Iterator[Problem]:
        """Run some cases of a kind."""
        folder = self._copied(kind)
        targets = sorted({path for pattern in kind.files for path in folder.glob(pattern) if path.is_file()})
        if kind.agree or kind.name.endswith("folders"):
            targets = [path for path in targets if path.name != MANIFEST] or targets
        for number in numbers:
            chance = random.Random(f"{SEED} {kind.name} {number}")
            target = chance.choice(targets)
            target.write_bytes(kind.damage(target.read_bytes(), chance))
            if kind.agree:
                self._agree(folder, target)
            words = [word.replace("@", str(folder), 1) for word in chance.choice(kind.commands)]
            case = f"{kind.name} {number} ({target.relative_to(folder)}): stirred {' '.join(words)}"
            for problem in self._run(kind, folder, words):
                yield Problem(case, problem)
            self._restore(kind, folder)

    def _run(self, kind: Kind, folder: Path, words: list[str]) -> Iterator[str]:
        before = contents(folder)
        os.environ.pop("STIRRED_DEBUG", None)
        try:
            ended = self._runner.run(*words)
        except Hung:
            yield f"hung for {SECONDS} s"
            return
        except BaseException as escaped:
            yield f"{type(escaped).__name__} escaped"
            return
        said = ended.out + ended.err
        if ended.code not in (*DOCUMENTED, *(OPEN if words[0] == "verify" else ())):
            yield f"exit code {ended.code}: {ended.err[:300]}"
        if "Traceback" in said:
            yield "printed a traceback"
        if MARKER in (ended.err if words[0] in CONFIDENTIAL else said):
            yield "printed a cell of the data"
        if CONTROLS.search(said) and words[0] != "tabulate":
            yield "printed control characters"
        if len(said) > 1_000_000:
            yield f"printed {len(said):,} characters"
        after = contents(folder)
        if kind.writes and ended.code == 0 and words[0] == "release":
            after = {name: data for name, data in after.items() if not name.startswith(("out/", "work/"))}
            before = {name: data for name, data in before.items() if not name.startswith("work/")}
            if not (folder / "out" / MANIFEST).is_file():
                yield "said that it released, and there is no whole folder"
        if before != after:
            changed = sorted({name for name in {*before, *after} if before.get(name) != after.get(name)})
            yield f"left behind or changed {changed[:5]}"
        if words[0] == "verify" and ended.code in (0, 4) and not kind.agree and self._differs(kind, folder):
            yield "certified files that are not those of the manifest"

    def _differs(self, kind: Kind, folder: Path) -> bool:
        """Whether anything that a document means has changed; a manifest may be written in other ways."""
        now, then = contents(folder), self._pristine[kind.folder]
        if kind.name == "manifests":
            with contextlib.suppress(ValueError):
                return bool(json.loads(now[MANIFEST]) != json.loads(then[MANIFEST]))
        return now != then

    def _agree(self, folder: Path, target: Path) -> None:
        root = folder / "work" if (folder / "work") in target.parents else folder
        (root / MANIFEST).unlink(missing_ok=True)
        write_manifest(root)

    def _copied(self, kind: Kind) -> Path:
        folder = self._place / kind.folder
        if not folder.exists():
            shutil.copytree(self._base / kind.folder, folder)
            self._pristine[kind.folder] = contents(folder)
        return folder

    def _restore(self, kind: Kind, folder: Path) -> None:
        pristine = self._pristine[kind.folder]
        for path in sorted(folder.rglob("*"), reverse=True):
            name = str(path.relative_to(folder))
            if path.is_dir() and not path.is_symlink():
                if not any(known.startswith(f"{name}/") for known in pristine):
                    shutil.rmtree(path)
            elif name not in pristine:
                path.unlink()
        for name, data in pristine.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
