"""Release folders changed by somebody who knows the format: everything that can be made to agree is made to agree.

``forge`` changes a folder, then writes plan hash, the specification beside the certificate, and manifest anew. Each of
these must be noticed by ``verify``, and none may end in a fault.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stirred
from stirred.errors import StirredError
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.plans import hash_of
from stirred.releases.verdicts import State
from stirred.topdown import preset

Change = Callable[[Path], None]
CERTIFICATE, DICTIONARY, SPECIFICATION = "certificate.json", "data_dictionary.json", "specification.json"

HOUSEHOLDS = pl.DataFrame(
    {
        "id": range(1, 61),
        "size": [1, 2, 3] * 20,
        "county": list("abcab") * 12,
        "tenure": list("oorr") * 15,
    }
)
PERSONS = pl.DataFrame({"person": range(1, 91), "id": [*range(1, 61), *range(1, 31)], "sex": list("fm") * 45})
PLACES = pl.DataFrame({"county": list("AABB"), "town": list("wxyz")})
PEOPLE = pl.DataFrame({"town": list("wxyz") * 30, "race": list("aab") * 40, "adult": ["yes", "no"] * 60})


def swap_release(folder: Path, form: str = "csv", report: bool = True) -> None:
    plan = stirred.SwapPlan(
        unit="household", match=["size"], swap=["county"], hold=["tenure"], id="id", rate=0.1, format=form,
        publish=[["county", "tenure"]], saturated=True, chosen_from="public",
        linked=[{"name": "persons", "link": "id", "id": "person", "hold": ["sex"]}],
    )  # fmt: skip
    stirred.release(plan, {"microdata": HOUSEHOLDS, "persons": PERSONS}, out=folder, report=report)


def plain_release(folder: Path) -> None:
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, format="csv")
    stirred.release(plan, HOUSEHOLDS.drop("id"), out=folder)


def topdown_release(folder: Path, report: bool = True) -> None:
    plan = preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"])
    fields = plan.model_dump() | {
        "publish": [{"table": "persons", "level": "county", "by": ["race"]}],
        "invariants": [{"table": "persons", "level": "county"}],
    }
    stirred.release(type(plan)(**fields), {"persons": PEOPLE, "geography": PLACES}, out=folder, report=report)


SURVEY = pl.DataFrame(
    {
        "weight": [2.5, 1.0, 4.0, 1.5] * 15,
        "region": ["n"] * 20 + ["s"] * 40,
        "sex": [*("fm" * 27), *([None] * 6)],
        "income": [10, 0, 7, None, 3] * 12,
        "age": [20, 30, 40] * 20,
    }
)


def survey_release(folder: Path, form: str = "csv", report: bool = True, **budget: Any) -> None:
    plan = stirred.SurveyPlan(
        unit="person", dataset="a survey", chosen_from="public", format=form, **(budget or {"epsilon": 20}),
        weights={"column": "weight", "lower": 1, "upper": 5, "step": "0.5"},
        design={"strata": "region", "sizes": {"n": {"selected": 20, "population": 90, "upper": 4},
                                              "s": {"selected": 40}}},
        attributes=[{"name": "region", "values": ["n", "s"], "in_frame": True}, {"name": "sex", "values": ["f", "m"]}],
        variables=[{"name": "income", "lower": 0, "upper": 10}, {"name": "age", "lower": 0, "upper": 100, "step": 10}],
        imputation=[{"of": "sex", "kind": "frequencies", "given": ["region"], "share": "1/10"},
                    {"of": "income", "kind": "linear", "given": ["age"], "share": "1/10"}],
        queries=[{"by": ["region", "sex"]}, {"of": "income", "by": ["region", "sex"]}],
        calibrations=[{"name": "known", "method": "post-stratified", "margins": [{"by": ["sex"], "totals": [70, 70]}]}],
        publish=[{"kind": "count", "by": ["sex"], "errors": "1/10"}, {"kind": "mean", "of": "income", "by": ["region"],
                 "errors": "1/10"}, {"kind": "proportion", "of": "sex", "by": ["region"], "errors": "1/10"},
                 {"kind": "count", "by": ["region"], "calibration": "known"}],
    )  # fmt: skip
    stirred.release(plan, SURVEY, out=folder, report=report)


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("releases")
    swap_release(folder / "swap")
    swap_release(folder / "swap-parquet", "parquet")
    plain_release(folder / "plain")
    topdown_release(folder / "topdown")
    survey_release(folder / "survey")
    survey_release(folder / "survey-parquet", "parquet", rho=20)
    return folder


# -- forging ---------------------------------------------------------------------------------------------------


def forge(folder: Path, change: Change) -> None:
    """Change a folder, and make everything that is computed from its bytes agree again."""
    change(folder)
    path = folder / CERTIFICATE
    if path.is_file() and not path.is_symlink():
        fields = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(fields.get("plan"), dict) and "plan_sha256" in fields:
            fields["plan_sha256"] = hash_of(fields["plan"])
        geography = folder / "measurements" / "geography.parquet"
        if geography.is_file():
            fields["geography_sha256"] = hashlib.sha256(geography.read_bytes()).hexdigest()
        path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if isinstance(fields.get("specification"), dict):
            text = json.dumps(fields["specification"], indent=2, ensure_ascii=False) + "\n"
            (folder / SPECIFICATION).write_text(text, encoding="utf-8")
    (folder / MANIFEST).unlink()
    write_manifest(folder)


def at(document: str, *place: str | int, to: Any = None, remove: bool = False) -> Change:
    """A field of a JSON document, changed or removed."""

    def change(folder: Path) -> None:
        path = folder / document
        whole = json.loads(path.read_text(encoding="utf-8"))
        holder = whole
        for key in place[:-1]:
            holder = holder[key]
        if remove:
            del holder[place[-1]]
        else:
            before = holder.get(place[-1]) if isinstance(holder, dict) else holder[place[-1]]
            holder[place[-1]] = to(before) if callable(to) else to
        path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    return change


def both(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def rows(name: str, to: Callable[[list[str]], list[str]]) -> Change:
    """The lines of a text file below its header."""

    def change(folder: Path) -> None:
        header, *lines = (folder / name).read_text(encoding="utf-8").splitlines()
        (folder / name).write_text("\n".join([header, *to(lines)]) + "\n", encoding="utf-8")

    return change


def column(name: str, header: str, cell: str = "0") -> Change:
    """One more column of a CSV file."""

    def change(folder: Path) -> None:
        first, *lines = (folder / name).read_text(encoding="utf-8").splitlines()
        (folder / name).write_text("\n".join([f"{first},{header}", *(f"{one},{cell}" for one in lines)]) + "\n")

    return change


def added(name: str, text: str = "x\n") -> Change:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return change


def removed(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def appended(name: str, text: str = "one more line\n") -> Change:
    def change(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def published(line: str) -> Change:
    """One more line in a table beside the microdata."""
    return lambda folder: appended(f"tables/{min((folder / 'tables').iterdir()).name}", line)(folder)


def table(pattern: str, to: Callable[[pa.Table], pa.Table]) -> Change:
    """A Parquet file, rewritten."""

    def change(folder: Path) -> None:
        path = min(folder.glob(pattern))
        pq.write_table(to(pq.read_table(path)), path)

    return change


def swapped_values(lines: list[str]) -> list[str]:
    """The county of two records exchanged that do not match, which changes a margin."""
    cells = [line.split(",") for line in lines]
    first = cells[0]
    other = next(one for one in cells if one[1] != first[1] and one[2] != first[2])
    first[2], other[2] = other[2], first[2]
    return [",".join(one) for one in cells]


def replaced(values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    def to(found: pa.Table) -> pa.Table:
        return found.set_column(found.num_columns - 1, found.column_names[-1], pa.array(values[: found.num_rows]))

    return to


SPEC = (CERTIFICATE, "specification")
SWAP: dict[str, Change] = {
    # what the certificate says
    "no margins": at(CERTIFICATE, "invariants", to=[]),
    "one margin less": at(CERTIFICATE, "invariants", to=lambda found: found[1:]),
    "margins in another order": at(CERTIFICATE, "invariants", to=lambda found: found[::-1]),
    "a margin by fewer columns": at(CERTIFICATE, "invariants", 0, "columns", to=["size"]),
    "a margin of another table": at(CERTIFICATE, "invariants", 0, "table", to="persons"),
    "another fingerprint": at(CERTIFICATE, "invariants", 0, "sha256", to="0" * 64),
    "no whole records": at(CERTIFICATE, "whole_records", to=None),
    "another whole record": at(CERTIFICATE, "whole_records", "fingerprint", to="0" * 64),
    "epsilon lowered": at(*SPEC, "budget", "value", to="1"),
    "epsilon zero": at(*SPEC, "budget", "value", to="0"),
    "epsilon a little lower": at(*SPEC, "budget", "value", to=lambda text: text[:-3] or "0"),
    "epsilon in other words": at(*SPEC, "budget", "conversion", to="trust me"),
    "epsilon in other words, twice": both(
        at(*SPEC, "budget", "conversion", to="trust me"), at(CERTIFICATE, "conversions", to=["trust me"])
    ),
    "another thing that is covered": at(*SPEC, "covers", to=["every release of this office"]),
    "a name of the guarantee": at(*SPEC, "name", to="anonymous"),
    "another unit": at(*SPEC, "input_premetric", "unit", to="person"),
    "no invariants in the guarantee": at(*SPEC, "multiverse", "invariants", to=[]),
    "findings removed": at(*SPEC, "findings", to=[]),
    "a mark": at(*SPEC, "marks", to=["not for release"]),
    "randomness from a seed": at(CERTIFICATE, "randomness", to="a seeded source: not for release"),
    "randomness in other words": at(CERTIFICATE, "randomness", to="very random"),
    "conversions removed": at(CERTIFICATE, "conversions", to=[]),
    "one more field": at(CERTIFICATE, "approved", to="by everybody"),
    "one more field in a margin": at(CERTIFICATE, "invariants", 0, "counts", to=[1, 2, 3]),
    "no day": at(CERTIFICATE, "released_on", remove=True),
    "a day that is none": at(CERTIFICATE, "released_on", to="tomorrow"),
    "versions that are none": at(CERTIFICATE, "versions", "numba", to={"x": 1}),
    # what the plan says
    "a higher rate": at(CERTIFICATE, "plan", "rate", to="1/2"),
    "a lower rate": at(CERTIFICATE, "plan", "rate", to="1/100"),
    "a rate beyond reason": at(CERTIFICATE, "plan", "rate", to="1e999999999"),
    "a later round": at(CERTIFICATE, "plan", "rounds", to=[{"swap": ["county"], "rate": "1/10"}]),
    "matched on nothing": at(CERTIFICATE, "plan", "match", to=[]),
    "matched on more": at(CERTIFICATE, "plan", "match", to=["size", "tenure"]),
    "roles exchanged": both(
        at(CERTIFICATE, "plan", "swap", to=["tenure"]), at(CERTIFICATE, "plan", "hold", to=["county"])
    ),
    "where the input was": at(CERTIFICATE, "plan", "input", to={"path": "/confidential/households.csv"}),
    "versions that tell a story": at(CERTIFICATE, "versions", "numpy", to="Jane Doe lives in county a"),
    "chosen from elsewhere": at(CERTIFICATE, "plan", "chosen_from", to="this data"),
    "no linked tables": at(CERTIFICATE, "plan", "linked", to=[]),
    "another unit in the plan": at(CERTIFICATE, "plan", "unit", to="person"),
    "fewer tables to publish": at(CERTIFICATE, "plan", "publish", to=[]),
    "not saturated": at(CERTIFICATE, "plan", "saturated", to=False),
    "an unknown field of the plan": at(CERTIFICATE, "plan", "colour", to="blue"),
    "an allowance": at(CERTIFICATE, "plan", "allow", to=["determines:tenure"]),
    # what the data dictionary says
    "a role exchanged": at(DICTIONARY, "tables", 0, "columns", 3, "role", to="swap"),
    "a role that is none": at(DICTIONARY, "tables", 0, "columns", 3, "role", to="secret"),
    "listed values changed": at(DICTIONARY, "tables", 0, "columns", 2, "listed", to=["a", "b", "z"]),
    "one listed value more": at(DICTIONARY, "tables", 0, "columns", 2, "listed", to=lambda found: [*found, "z"]),
    "no listed values": at(DICTIONARY, "tables", 0, "columns", 2, "listed", to=[]),
    "another number of values": at(DICTIONARY, "tables", 0, "columns", 2, "values", to=7),
    "another number of rows": at(DICTIONARY, "tables", 0, "rows", to=61),
    "another order": at(DICTIONARY, "tables", 0, "order", to="as in the confidential file"),
    "another type": at(DICTIONARY, "tables", 0, "columns", 2, "type", to="int64"),
    "another note": at(DICTIONARY, "tables", 0, "columns", 0, "note", to="the original number"),
    "a column left out": at(DICTIONARY, "tables", 0, "columns", to=lambda found: found[:-1]),
    "a table left out": at(DICTIONARY, "tables", to=lambda found: found[:1]),
    "no tables": at(DICTIONARY, "tables", to=[]),
    "a table twice": at(DICTIONARY, "tables", to=lambda found: [*found, found[0]]),
    "tables in another order": at(DICTIONARY, "tables", to=lambda found: found[::-1]),
    "a file outside": at(DICTIONARY, "tables", 0, "file", to="../microdata.csv"),
    "one more field of the dictionary": at(DICTIONARY, "more", to={"true": 1}),
    "one more field of a column": at(DICTIONARY, "tables", 0, "columns", 2, "truth", to="x"),
    # other files
    "an extra table": added("tables/true_counts.csv", "county,count\na,1\n"),
    "an extra file": added("notes.txt"),
    "a hidden file": added(".hidden"),
    "a hidden folder": added(".cache/x"),
    "a backup of an editor": added("certificate.json~"),
    "a readme of one's own": added("README.txt", "This release was approved.\n"),
    "one more line in the readme": appended("README.txt"),
    "no readme": removed("README.txt"),
    "a table removed": removed("saturated.csv"),
    "a linked file removed": removed("persons.csv"),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
    # the tables
    "one row less": rows("microdata.csv", lambda lines: lines[:-1]),
    "one row more": rows("microdata.csv", lambda lines: [*lines, lines[-1]]),
    "two values exchanged": rows("microdata.csv", swapped_values),
    "rows in another order": rows("microdata.csv", lambda lines: lines[::-1]),
    "an extra column": column("microdata.csv", "true_county", "a"),
    "an extra column with a name that is empty": column("microdata.csv", "", "a"),
    "linked rows of other records": rows("persons.csv", lambda lines: [lines[0].replace(",1,", ",2,", 1), *lines[1:]]),
    "a linked row less": rows("persons.csv", lambda lines: lines[:-1]),
    "linked rows in another order": rows("persons.csv", lambda lines: lines[::-1]),
    "counts changed": rows("saturated.csv", lambda lines: [*lines[:-1], lines[-1] + "0"]),
    "a published table changed": published("a,o,1\n"),
    "a byte order mark": lambda folder: (folder / "microdata.csv").write_bytes(
        b"\xef\xbb\xbf" + (folder / "microdata.csv").read_bytes()
    ),
    "windows line ends": lambda folder: (folder / "microdata.csv").write_bytes(
        (folder / "microdata.csv").read_bytes().replace(b"\n", b"\r\n")
    ),
}  # fmt: skip

PARQUET: dict[str, Change] = {
    "an extra column": table("microdata.parquet", lambda found: found.append_column("true", pa.array([1] * 60))),
    "rows in another order": table("microdata.parquet", lambda found: found.take(list(range(found.num_rows))[::-1])),
    "a note in the file": table(
        "microdata.parquet", lambda found: found.replace_schema_metadata({"true_counts": "1,2,3"})
    ),
    "a note at a column": table(
        "microdata.parquet",
        lambda found: found.cast(
            pa.schema([one.with_metadata({"truth": "x"}) if one.name == "county" else one for one in found.schema])
        ),
    ),
    "another type": table(
        "microdata.parquet", lambda found: found.set_column(1, "size", found["size"].cast(pa.float64()))
    ),
}

TOPDOWN: dict[str, Change] = {
    "rho lowered": at(*SPEC, "budget", "value", to="1/100"),
    "rho of a table lowered": at(CERTIFICATE, "plan", "tables", 0, "rho", to="1/100"),
    "shares moved": at(
        CERTIFICATE, "plan", "tables", 0, "level_shares",
        to=lambda found: dict(zip(found, [*list(found.values())[1:], next(iter(found.values()))], strict=True))
        if len(set(found.values())) > 1 else {**found, next(iter(found)): "1/1000"},
    ),
    "no invariants in the certificate": at(CERTIFICATE, "invariants", to=[]),
    "no invariants in the plan": at(CERTIFICATE, "plan", "invariants", to=[]),
    "another fingerprint": at(CERTIFICATE, "invariants", 0, "sha256", to="0" * 64),
    "values of an invariant changed": table("invariants/*.parquet", replaced([1, 2, 3, 4])),
    "an invariant's file removed": lambda folder: min((folder / "invariants").iterdir()).unlink(),
    "an extra invariant's file": added("invariants/2-persons-town.parquet"),
    "measurements replaced by text": table("measurements/0*.parquet", replaced(["SECRET"] * 100)),
    "measurements replaced by fractions": table("measurements/0*.parquet", replaced([0.5] * 100)),
    "measurements with nulls": table("measurements/0*.parquet", replaced([None] * 100)),
    "measurements in another order": table(
        "measurements/0*.parquet", lambda found: found.take(list(range(found.num_rows))[::-1])
    ),
    "an extra column beside measurements": table(
        "measurements/0*.parquet", lambda found: found.append_column("truth", pa.array([1] * found.num_rows))
    ),
    "a note in a file of measurements": table(
        "measurements/0*.parquet",
        lambda found: found.replace_schema_metadata({**(found.schema.metadata or {}), "truth": "1"}),
    ),
    "another variance": table(
        "measurements/0*.parquet", lambda found: found.replace_schema_metadata({"rho": "1", "variance": "1"})
    ),
    "a measurement removed": lambda folder: min((folder / "measurements").glob("0*")).unlink(),
    "an extra file of measurements": added("measurements/999-truth.parquet"),
    "a hidden file beside measurements": added("measurements/.truth.swp"),
    "a backup beside measurements": added("measurements/measurements.json~"),
    "an index without an entry": at("measurements/measurements.json", 0, remove=True),
    "an index with another rho": at("measurements/measurements.json", 0, "rho", to="1/1000"),
    "an index that points outside": at("measurements/measurements.json", 0, "file", to="../persons.parquet"),
    "places in another order": table(
        "measurements/geography.parquet", lambda found: found.take(list(range(found.num_rows))[::-1])
    ),
    "one place more": table(
        "measurements/geography.parquet", lambda found: pa.concat_tables([found, found.slice(0, 1)])
    ),
    "an extra column of places": table(
        "measurements/geography.parquet", lambda found: found.append_column("truth", pa.array([1] * found.num_rows))
    ),
    "rows in another order": table("persons.parquet", lambda found: found.take(list(range(found.num_rows))[::-1])),
    "one row less": table("persons.parquet", lambda found: found.slice(1)),
    "an extra column": table("persons.parquet", lambda found: found.append_column("t", pa.array([1] * found.num_rows))),
    "a note in the file": table("persons.parquet", lambda found: found.replace_schema_metadata({"truth": "1"})),
    "a published table changed": published("A,a,1\n"),
    "an extra table": added("tables/true_counts.csv"),
    "a readme of one's own": added("README.txt", "This release was approved.\n"),
    "the fit left out": at(CERTIFICATE, "fit", to=[]),
    "a fit with more fields": at(CERTIFICATE, "fit", 0, "truth", to=[1]),
    "a fit that is none": at(CERTIFICATE, "fit", 0, "units", to=99),
    "earlier releases invented": at(
        CERTIFICATE, "agrees_with", to=[{"table": "persons", "by": [], "manifest_sha256": "0" * 64}]
    ),
    "fallbacks that hide something": at(CERTIFICATE, "fit", 0, "fallbacks", to=[{"A": {"truth": 1}, "words": [2]}]),
    "a kappa that is a list": at(CERTIFICATE, "fit", 0, "kappa", to=[1, 2]),
    "passes without end": at(CERTIFICATE, "fit", 0, "passes", to=10**900),
    "zero bytes behind places": table(
        "persons.parquet",
        lambda found: found.set_column(
            0, found.column_names[0], pa.array([f"{text}\0" for text in found.column(0).to_pylist()])
        ),
    ),
    "a note on a column of measurements": table(
        "measurements/0*.parquet",
        lambda found: found.cast(
            pa.schema(
                [found.schema.field(0).with_metadata({"truth": "1"}), *list(found.schema)[1:]], found.schema.metadata
            )
        ),
    ),
    "a mark": at(*SPEC, "marks", to=["not for release"]),
    "randomness from a seed": at(CERTIFICATE, "randomness", to="a seeded source: not for release"),
    "one more field": at(CERTIFICATE, "approved", to="by everybody"),
    "a value of an attribute more": at(
        CERTIFICATE, "plan", "tables", 0, "attributes", 0, "values", to=lambda found: [*found, "z"]
    ),
    "an attribute less": at(CERTIFICATE, "plan", "tables", 0, "attributes", to=lambda found: found[:1]),
    "another level": at(CERTIFICATE, "plan", "spine", "levels", to=["county"]),
    "fewer tables to publish": at(CERTIFICATE, "plan", "publish", to=[]),
}  # fmt: skip

MEAN = "tables/mean-income-region.csv"


def number(name: str, column_name: str, to: Callable[[float], float]) -> Change:
    """The first number of a column of a table of estimates."""

    def change(folder: Path) -> None:
        header, first, *lines = (folder / name).read_text(encoding="utf-8").splitlines()
        cells, at_column = first.split(","), header.split(",").index(column_name)
        cells[at_column] = f"{to(float(cells[at_column])):.9g}"
        (folder / name).write_text("\n".join([header, ",".join(cells), *lines]) + "\n", encoding="utf-8")

    return change


def cell(name: str, to: str) -> Change:
    """The last cell of the first row of a CSV file."""
    return rows(name, lambda lines: [lines[0].rsplit(",", 1)[0] + "," + to, *lines[1:]])


MODELS = (CERTIFICATE, "imputation")

SURVEY_FORGERIES: dict[str, Change] = {
    "epsilon lowered": at(*SPEC, "budget", "value", to="1"),
    "epsilon of the plan lowered": at(CERTIFICATE, "plan", "epsilon", to="1"),
    "another start": at(CERTIFICATE, "plan", "starts", to="responding sample"),
    "another reading": at(CERTIFICATE, "plan", "change", to="value"),
    "other bounds": at(CERTIFICATE, "plan", "weights", "upper", to="4"),
    "a query less": at(CERTIFICATE, "plan", "queries", to=lambda found: found[:1]),
    "a table less to publish": at(CERTIFICATE, "plan", "publish", to=lambda found: found[:1]),
    "shares moved": at(CERTIFICATE, "plan", "publish", 0, "errors", to="1/5"),
    "a value of an attribute more": at(CERTIFICATE, "plan", "attributes", 1, "values", to=["f", "m", "x"]),
    "values in another order": at(CERTIFICATE, "plan", "attributes", 1, "values", to=["m", "f"]),
    "other public totals": at(CERTIFICATE, "plan", "calibrations", 0, "margins", 0, "totals", to=["60", "80"]),
    "a plan that is none": at(CERTIFICATE, "plan", "queries", to=[{"by": ["nothing"]}]),
    "a plan without queries": at(CERTIFICATE, "plan", "queries", to=[]),
    "no imputation in the certificate": at(CERTIFICATE, "imputation", remove=True),
    "imputation that is a text": at(CERTIFICATE, "imputation", to="none"),
    "an imputation model less": at(CERTIFICATE, "imputation", to=lambda found: {"sex": found["sex"]}),
    "an imputation model more": at(CERTIFICATE, "imputation", to=lambda found: {**found, "age": found["income"]}),
    "models exchanged": at(
        CERTIFICATE, "imputation", to=lambda found: {"sex": found["income"], "income": found["sex"]}
    ),
    "a model with another share": at(*MODELS, "sex", "epsilon", to="1"),
    "a model with one more field": at(*MODELS, "sex", "truth", to=[1]),
    "a model of another attribute": at(*MODELS, "sex", "target", to="region"),
    "a model given something else": at(*MODELS, "sex", "by", to=["the truth is 12"]),
    "a model with more counts": at(*MODELS, "sex", "noisy_counts", to=lambda found: [*found, [1, 2]]),
    "a model with a count that is a text": at(*MODELS, "sex", "noisy_counts", 0, 0, to="12"),
    "a model with a count that is true": at(*MODELS, "sex", "noisy_counts", 0, 0, to=True),
    "a model with a count that is no whole number": at(*MODELS, "sex", "noisy_counts", 0, 0, to=12.0),
    "a line on another lattice": at(*MODELS, "income", "target", "high", to="20"),
    "a lattice in other words": at(*MODELS, "income", "target", "high", to="10.0"),
    "a line with another name": at(*MODELS, "income", "predictor", "name", to="truth"),
    "a line with more sums": at(*MODELS, "income", "noisy", to=lambda found: [*found, 1]),
    "a line that is none": at(*MODELS, "income", to=[1]),
    "a sum off the lattice": cell("count-region-sex.csv", "12.25"),
    "a sum changed": cell("count-region-sex.csv", "999.5"),
    "a sum that is empty": cell("count-region-sex.csv", ""),
    "a sum that is a text": cell("count-region-sex.csv", "many"),
    "a sum that is infinite": cell("count-region-sex.csv", "inf"),
    "a sum without end": cell("income-region-sex.csv", "9" * 60),
    "a sum of 19 digits": cell("income-region-sex.csv", "9223372036854775807.5"),
    "a sum with more digits": cell("income-region-sex.csv", "12.500"),
    "sums in another order": rows("count-region-sex.csv", lambda lines: lines[::-1]),
    "a sum less": rows("count-region-sex.csv", lambda lines: lines[:-1]),
    "a sum more": rows("count-region-sex.csv", lambda lines: [*lines, lines[-1]]),
    "a column more beside sums": column("count-region-sex.csv", "truth", "12"),
    "a standard error changed": cell("errors-mean-income-region.csv", "99999999"),
    "a standard error that is no whole number": cell("errors-count-sex.csv", "1.5"),
    "another centre": rows(
        "errors-mean-income-region.csv", lambda lines: [lines[0].split(",")[0] + ",9,7", *lines[1:]]
    ),
    "a centre without end": rows(
        "errors-mean-income-region.csv", lambda lines: [f"{lines[0].split(',')[0]},{'9' * 30},7", *lines[1:]]
    ),
    "standard errors removed": removed("errors-mean-income-region.csv"),
    "an estimate changed a little": number(MEAN, "estimate", lambda found: found * (1 + 1e-5)),
    "a standard error of an estimate changed a little": number(MEAN, "standard_error", lambda found: found * 0.99999),
    "an interval changed a little": number(MEAN, "upper", lambda found: found + 1e-3),
    "another source of the sampling error": rows(
        MEAN, lambda lines: [one.replace("measured", "bounded") for one in lines]
    ),
    "numbers of estimates changed very little": number(MEAN, "estimate", lambda found: found * (1 + 9e-7)),
    "estimates in quotation marks": rows(MEAN, lambda lines: ['"' + lines[0].replace(",", '","') + '"', *lines[1:]]),
    "estimates with Windows line ends": lambda folder: (folder / MEAN).write_bytes(
        (folder / MEAN).read_bytes().replace(b"\n", b"\r\n")
    ),
    "estimates in other digits": rows(MEAN, lambda lines: [lines[0].replace(".", ".0e0", 1), *lines[1:]]),
    "an estimate in other digits": rows(MEAN, lambda lines: [lines[0].replace(".", "0." , 1), *lines[1:]]),
    "estimates in another order": rows(MEAN, lambda lines: lines[::-1]),
    "an estimate less": rows(MEAN, lambda lines: lines[:-1]),
    "an estimate more": rows(MEAN, lambda lines: [*lines, lines[-1]]),
    "a column more beside estimates": column(MEAN, "truth", "12"),
    "estimates with a remark": appended(MEAN, "# the true mean is 5\n"),
    "estimates with an open quote": appended(MEAN, '"'),
    "estimates with a long number": rows(MEAN, lambda lines: [lines[0] + "0" * 5000, *lines[1:]]),
    "estimates without end": appended(MEAN, "x" * 100_000),
    "estimates that are empty": added(MEAN, ""),
    "calibrated estimates changed": number("tables/count-region-known.csv", "estimate", lambda found: found + 1),
    "estimates removed": removed(MEAN),
    "an extra table": added("tables/truth.csv"),
    "an extra file": added("notes.txt"),
    "a readme of one's own": added("README.txt", "This release was approved.\n"),
    "one more field": at(CERTIFICATE, "approved", to="by everybody"),
    "another note": at(DICTIONARY, "tables", 0, "columns", 0, "note", to="true"),
    "another order of rows": at(DICTIONARY, "tables", 0, "order", to="by truth"),
    "tables in another order": at(DICTIONARY, "tables", to=lambda found: found[::-1]),
    "another type": at(DICTIONARY, "tables", 0, "columns", 2, "type", to="double"),
    "another role": at(DICTIONARY, "tables", 0, "columns", 2, "role", to="id"),
    "a table left out": at(DICTIONARY, "tables", to=lambda found: found[:-1]),
    "a mark": at(*SPEC, "marks", to=["not for release"]),
    "randomness from a seed": at(CERTIFICATE, "randomness", to="a seeded source: not for release"),
}  # fmt: skip

SURVEY_PARQUET: dict[str, Change] = {
    "an extra column": table("count-*.parquet", lambda found: found.append_column("true", pa.array([1] * 4))),
    "rows in another order": table("count-*.parquet", lambda found: found.take(list(range(found.num_rows))[::-1])),
    "a note in the file": table("count-*.parquet", lambda found: found.replace_schema_metadata({"truth": "1,2,3"})),
    "sums as floating-point numbers": table(
        "count-*.parquet", lambda found: found.set_column(2, "value", found["value"].cast(pa.float64()))
    ),
    "sums that are texts": table(
        "count-*.parquet", lambda found: found.set_column(2, "value", pa.array(["1"] * found.num_rows))
    ),
    "sums that are lists": table(
        "count-*.parquet", lambda found: found.set_column(2, "value", pa.array([[1]] * found.num_rows))
    ),
    "sums that are empty": table(
        "count-*.parquet", lambda found: found.set_column(2, "value", pa.array([None] * 4, found["value"].type))
    ),
    "standard errors as floating-point numbers": table(
        "errors-mean*.parquet", lambda found: found.set_column(2, "multiple", found["multiple"].cast(pa.float64()))
    ),
    "rho lowered": at(*SPEC, "budget", "value", to="1"),
    "a model with another law": at(CERTIFICATE, "imputation", "sex", "noise", to="laplace"),
}

CASES = [
    *(("survey", name, change) for name, change in SURVEY_FORGERIES.items()),
    *(("survey-parquet", name, change) for name, change in SURVEY_PARQUET.items()),
    *(("swap", name, change) for name, change in SWAP.items()),
    *(("swap-parquet", name, change) for name, change in PARQUET.items()),
    *(("topdown", name, change) for name, change in TOPDOWN.items()),
    ("plain", "rows in another order", rows("microdata.csv", lambda lines: lines[::-1])),
    ("plain", "epsilon lowered", at(*SPEC, "budget", "value", to="1")),
]


def answer(folder: Path) -> State:
    """What ``verify`` says; a folder that it refuses is contradicted."""
    try:
        return stirred.verify(folder).state
    except StirredError:
        return State.CONTRADICTED


def noticed(folder: Path) -> bool:
    """Whether ``verify`` says no, or refuses."""
    return answer(folder) is State.CONTRADICTED


@pytest.mark.parametrize(("release", "name", "change"), CASES, ids=[f"{one[0]}: {one[1]}" for one in CASES])
@pytest.mark.one_in(6)
def test_a_forgery_is_noticed_on_the_command_line(release, name, change, releases, tmp_path, command):
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    forge(folder, change)
    ended = command("verify", folder)
    assert ended.code in (1, 2), ended.out  # contradicted, or refused
    assert "Traceback" not in ended.err


WORDS_ONLY = {
    "swap: epsilon in other words, twice",
    "swap: another order",
    "swap: another note",
    "swap: a readme of one's own",
    "swap: one more line in the readme",
    "swap: a byte order mark",
    "swap: windows line ends",
    "topdown: a readme of one's own",
    "survey: a readme of one's own",
    "survey: another note",
    "survey: other bounds",
    "survey: another order of rows",
    "survey: a standard error of an estimate changed a little",
    "survey: an interval changed a little",
    "survey: another source of the sampling error",
    "survey: estimates in quotation marks",
    "survey: estimates with Windows line ends",
}
"""What is not noticed where another version is claimed, so that verify ends with 4 and says what it did not compare:
sentences, how values are stored, standard errors that were computed from what was measured."""


@pytest.mark.parametrize("forgery", sorted(WORDS_ONLY))
def test_what_only_a_comparison_of_words_notices_is_noticed(forgery, releases, tmp_path):
    ((release, change),) = [(one, change) for one, name, change in CASES if f"{one}: {name}" == forgery]
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    forge(folder, change)
    assert noticed(folder)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("release", "name", "change"), CASES, ids=[f"{one[0]}: {one[1]}" for one in CASES])
def test_a_forgery_is_noticed_by_its_meaning_too(release, name, change, releases, tmp_path):
    """A folder that claims another version is not compared letter for letter, so each verdict must stand for itself."""
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    forge(folder, lambda folder: (change(folder), claim_another_version(folder)))
    expected = State.NOT_COMPARED if f"{release}: {name}" in WORDS_ONLY else State.CONTRADICTED
    assert answer(folder) is expected


def claim_another_version(folder: Path) -> None:
    path = folder / CERTIFICATE
    if path.is_file() and not path.is_symlink():
        fields = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(fields, dict) and isinstance(fields.get("versions"), dict):
            fields["versions"]["stirred"] = "99.0.0"
            path.write_text(json.dumps(fields), encoding="utf-8")


def test_estimates_that_differ_in_their_last_digit_are_neither_confirmed_nor_contradicted(releases, tmp_path):
    """The arithmetic of another machine may differ there; nothing larger is let through."""
    for step, said in ((1, "open"), (3, "FAILS")):
        folder = Path(shutil.copytree(releases / "survey", tmp_path / said))
        forge(folder, number(MEAN, "estimate", lambda found, step=step: last_digit_moved(found, step)))
        line = next(line for line in map(str, stirred.verify(folder)) if MEAN in line)
        assert line.startswith(said) and ("the last digits of" in line) == (said == "open")


def last_digit_moved(number: float, by: int) -> float:
    return number + by * 10.0 ** (math.floor(math.log10(abs(number))) - 8)


@pytest.mark.parametrize("release", ["swap", "swap-parquet", "plain", "topdown", "survey", "survey-parquet"])
def test_a_folder_that_is_written_anew_without_a_change_holds(release, releases, tmp_path):
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    forge(folder, lambda _: None)
    assert answer(folder) is State.HOLDS


@pytest.mark.parametrize("release", ["swap", "topdown", "survey"])
def test_a_change_of_any_file_is_noticed_by_the_manifest(release, releases, tmp_path):
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST):
        before = path.read_bytes()
        for damaged in (before[:-1], before + b" ", bytes([before[0] ^ 1]) + before[1:]):
            path.write_bytes(damaged)
            assert noticed(folder), path
        path.write_bytes(before)
    assert not noticed(folder)


# -- things that are no files ----------------------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def outside(path: Path) -> None:
    copy = path.parent.parent / f"outside-{path.name}"
    copy.write_text("{}", encoding="utf-8")
    path.symlink_to(copy)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def folder_of_that_name(path: Path) -> None:
    path.mkdir()


PUT = (fifo, outside, device, loop, folder_of_that_name)
READ_BY = (["verify"], ["tabulate", "--by", "county"], ["lint"], ["explain"])
MADE_BY = ("swap", "topdown", "survey")


@pytest.mark.parametrize(
    ("put", "verb", "release"),
    [
        pytest.param(
            put,
            verb,
            release,
            marks=[] if (i + j) % 3 == k else pytest.mark.slow,
        )
        for i, put in enumerate(PUT)
        for j, verb in enumerate(READ_BY)
        for k, release in enumerate(MADE_BY)
    ],
)
def test_what_is_no_regular_file_is_never_read(put, verb, release, releases, tmp_path, command):
    folder = Path(shutil.copytree(releases / release, tmp_path / "release"))
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    for name in names:
        path = folder / name
        before = path.read_bytes()
        path.unlink()
        put(path)
        ended = command(verb[0], folder, *verb[1:])
        assert ended.code in (0, 1, 2)
        assert ended.code or verb[0] != "verify", name
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        path.write_bytes(before)
