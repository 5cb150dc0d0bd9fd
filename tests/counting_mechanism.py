"""A third mechanism, for the tests: the number of rows, with discrete Laplace noise, as one released row.

It shows what a mechanism must bring, and nothing of it stands anywhere else: a plan, a check, a draw, files, and a
verification that rebuilds the guarantee from the plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred.noise import RandomSource, SystemSource
from stirred.noise.laplace import discrete_laplace
from stirred.releases.folder.documents import (
    Certificate,
    ReleasedTable,
    check_json,
    draw_nonce,
    files_section,
    guarantee_section,
    titled,
    write_documents,
)
from stirred.releases.folder.release_folder import ReleaseFolder, tabulate_rows
from stirred.releases.folder.verifying import Expected, contents_verdicts, shape_verdicts
from stirred.releases.mechanism import Data, Mechanism, Option, Release, Verb
from stirred.releases.plans import InputSection, Plan
from stirred.releases.verdicts import Verdict
from stirred.spec import Budget, Domain, InputPremetric, Multiverse, OutputPremetric, Specification, lint
from stirred.spec.specification import NOT_FOR_RELEASE
from stirred.tables import Column, Table, open_input
from stirred.tables.reading.table_reader import read_parts
from stirred.tables.writing import Cell, write_table


class CountPlan(Plan):
    """Count the rows of one table at a given epsilon."""

    mechanism: ClassVar[str] = "count"
    epsilon: str = "1"
    input: InputSection = InputSection()


def specify(plan: CountPlan, for_release: bool = True) -> Specification:
    stated = Specification(
        domain=Domain(plan.dataset or "rows", record=plan.unit, free=True),
        multiverse=Multiverse(),
        input_premetric=InputPremetric(unit=plan.unit, bounded=False),
        output_premetric=OutputPremetric("multiplicative"),
        budget=Budget(Fraction(plan.epsilon), conversion="discrete Laplace noise of scale 1/epsilon on one count"),
        nearest=1,
        marks=() if for_release else (NOT_FOR_RELEASE,),
    )
    return stated.with_findings(*lint(stated))


def count_rows(plan: CountPlan, data: Data | None) -> int:
    opened = open_input("rows", Path(plan.input.path) if data is None else data, plan.input.options())
    return sum(part.rows for part in read_parts(opened, list(opened.kinds)[:1]))


def described(noisy: int) -> ReleasedTable:
    values = Column("number", np.zeros(1, np.uint8), pa.array([noisy], pa.int64()))
    encoded = Table("counts", 1, {"number": values})
    return ReleasedTable("counts", "counts.csv", "csv", 1, "one row", (("number", "count"),), encoded)


def readme(specification: Specification, table: ReleasedTable) -> str:
    return titled("A noisy count", specification) + files_section([table]) + guarantee_section(specification)


@dataclass(frozen=True)
class CountCheck:
    plan: CountPlan
    specification: Specification
    twice: bool
    code: str | None = None

    @property
    def open_stops(self) -> Sequence[errors.StirredError]:
        return ()

    def to_json(self) -> str:
        return check_json(self.plan, self.specification, (), (), {"twice": self.twice}, self.code)

    def __str__(self) -> str:
        return f"CONFIDENTIAL. One count at epsilon {self.plan.epsilon}.\n"


@dataclass(frozen=True)
class CountRelease:
    """The noisy count; drawing it is all there is to do."""

    plan: CountPlan
    specification: Specification
    noisy: int
    true: int
    for_release: bool
    nonce: str

    @property
    def draw(self) -> CountRelease:
        return self

    def finish(self) -> CountRelease:
        return self

    @property
    def summary(self) -> tuple[str, ...]:
        return ("one count",)

    def write_files(self, folder: Path) -> Certificate:
        table = described(self.noisy)
        values = table.encoded["number"]
        write_table(folder / table.file, table.format, [[Cell("number", values.codes, values)]])
        write_documents(folder, self.specification, [table], readme(self.specification, table))
        return Certificate(self.plan, self.specification, [], self.for_release, self.nonce)

    def write_confidential(self, folder: Path, data: Data | None) -> None:
        (folder / "true.txt").write_text(f"{self.true}\n", encoding="utf-8")


class Counting(Mechanism):
    name = "count"
    title = "counting with discrete Laplace noise"
    options: ClassVar = {"check": (Option("--twice", "Say it twice.", "twice", bool),)}
    verbs = (Verb("scale", "Print the noise's scale.", (Option("EPSILON", "Epsilon.", "epsilon", argument=True),),
                  lambda epsilon: [f"scale {1 / Fraction(epsilon)}"]),)  # fmt: skip
    plan_type = CountPlan

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        return f'stirred = 1\nmechanism = "count"\n[input]\npath = {json.dumps(str(file))}\n'

    def specify(self, plan: CountPlan) -> Specification:
        return specify(plan)

    def inputs(self, plan: CountPlan, data: Data | None = None) -> dict[str, Data]:
        return {"records": plan.input.path if data is None else data}

    def check(self, plan: CountPlan, data: Data | None = None, *, twice: bool = False) -> Any:
        return CountCheck(plan, specify(plan), twice)

    def draw(
        self, plan: CountPlan, data: Data | None = None, *, folder: Path | None = None, keep_truth: bool = False,
        source: RandomSource | None = None,
    ) -> CountRelease:  # fmt: skip
        source = source or SystemSource()
        true = count_rows(plan, data)
        noisy = true + int(discrete_laplace(1 / Fraction(plan.epsilon), 1, source)[0])
        stated = specify(plan, source.for_release)
        return CountRelease(plan, stated, noisy, true, source.for_release, draw_nonce(source))

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        plan = CountPlan.from_published(release.certificate["plan"])
        rebuilt = specify(plan, release.for_release)
        table = described(release.read("counts").table["number"].values[0].as_py())
        certificate = Certificate(plan, rebuilt, [], release.for_release, None)
        return [
            *shape_verdicts(release, "counts", 1),
            Verdict(release.states(rebuilt), "the guarantee is that of the plan"),
            *contents_verdicts(release, Expected(certificate, [table], readme(rebuilt, table))),
        ]

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        return tabulate_rows(release, by, release.require_table(table), release.with_role("counts", "count"))

    def prepare_demo(self, folder: Path) -> CountPlan:
        folder.mkdir()
        (folder / "rows.csv").write_text("a\n1\n2\n3\n")
        print("A file of three rows.")
        return CountPlan(epsilon="1/2", input={"path": str(folder / "rows.csv")})

    def show_demo(self, folder: Path, made: Release, began: float) -> None:
        assert isinstance(made, CountRelease)
        print(f"A count of 3, released as {made.noisy}.")
