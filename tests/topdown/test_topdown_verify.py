"""What a recipient notices of a TopDown release that was tampered with, its manifest rewritten."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from census import plan, tables

from stirred.releases.folder.manifest import write_manifest
from stirred.topdown.drawing import draw, release
from stirred.topdown.verifying import verify

PUBLISH = [{"table": "persons", "level": "county", "by": ["minor", "colour"]}, {"table": "dwellings", "level": "state"}]


@pytest.fixture
def made(tmp_path):
    chosen = plan(publish=PUBLISH)
    return release(chosen, tables(), out=tmp_path / "out", work=tmp_path / "work")


def rewrite(folder: Path, name: str, change) -> None:
    change(folder / name)
    write_manifest(folder)


def move_a_person(path: Path) -> None:
    rows = pl.read_parquet(path)
    first = rows.filter(pl.col("county").cast(pl.String) == "b").head(1)
    moved = first.with_columns(pl.lit("a").alias("county"), pl.lit("a1").alias("town"))
    rest = (
        rows.with_row_index()
        .filter(pl.col("index") != rows.with_row_index().filter(pl.col("county").cast(pl.String) == "b")["index"][0])
        .drop("index")
    )
    pl.concat([rest.cast(pl.String), moved.cast(pl.String)]).write_parquet(path)


def lose_a_measurement(path: Path) -> None:
    pl.read_parquet(path).head(3).write_parquet(path)


def claim_less(path: Path) -> None:
    entries = json.loads(path.read_text())
    entries[0]["variance"] = "1000"
    path.write_text(json.dumps(entries))


def reversed_column(path: Path, name: str) -> None:
    table = pq.read_table(path)
    plain = table[name].combine_chunks()
    flipped = plain.take(pa.array(range(len(plain) - 1, -1, -1)))
    pq.write_table(table.set_column(table.column_names.index(name), name, flipped), path)


def deny_homes(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.set_column(2, "count", pa.array([0] * len(table))), path)


def rename_a_county(path: Path) -> None:
    pl.read_parquet(path).with_columns(pl.col("county").replace("a", "c")).write_parquet(path)


def claim_a_smaller_budget(path: Path) -> None:
    fields = json.loads(path.read_text())
    fields["specification"]["budget"]["value"] = "1"
    path.write_text(json.dumps(fields))
    (path.parent / "specification.json").write_text(json.dumps(fields["specification"]))


def claim_another_share(path: Path) -> None:
    fields = json.loads(path.read_text())
    fields["plan"]["tables"][0]["rho"] = "1"
    path.write_text(json.dumps(fields))


def claim_another_way(path: Path) -> None:
    fields = json.loads(path.read_text())
    fields["fit"][0]["way"] = "level by level"
    path.write_text(json.dumps(fields))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("persons.parquet", move_a_person, "recounted and equal: the number of 'persons' in each county"),
        ("persons.parquet", lose_a_measurement, "persons has 200 rows"),
        ("measurements/007-persons-town-total.parquet", lose_a_measurement, "every query has a whole number"),
        ("measurements/007-persons-town-total.parquet", partial(reversed_column, name="geounit"), "in order"),
        ("measurements/009-persons-town-kind_adult_colour.parquet", partial(reversed_column, name="cell"), "in order"),
        ("measurements/007-persons-town-total.parquet", Path.unlink, "the files that the plan asks for"),
        ("measurements/geography.parquet", rename_a_county, "the geography is that of the certificate"),
        ("invariants/1-persons-county.parquet", partial(reversed_column, name="county"), "is not about"),
        ("persons.parquet", partial(reversed_column, name="county"), "the coarser places of every row"),
        ("certificate.json", claim_a_smaller_budget, "rho recomputed from all shares"),
        ("certificate.json", claim_another_share, "the plan has the hash in the certificate"),
        ("certificate.json", claim_another_way, "the certificate reports the fit of every table and level"),
        ("measurements/measurements.json", claim_less, "each with variance 1/rho"),
        ("invariants/3-homes-town-type.parquet", deny_homes, "as in the certificate: the number of 'homes'"),
    ],
)  # fmt: skip
def test_tampering_is_noticed(made, tmp_path, name, change, words):
    rewrite(tmp_path / "out", name, change)
    failing = [verdict.words for verdict in verify(tmp_path / "out") if not verdict.holds]
    assert any(words in one for one in failing), failing


def test_true_records_in_place_of_the_fit_are_noticed(tmp_path):
    """They keep all invariants and constraints, and every document agrees with them; they are not what was measured."""
    drawn = draw(plan(publish=PUBLISH), tables(), work=tmp_path / "work", keep_truth=True)
    replace(drawn.finish(), leaves=drawn.truth.leaves).write(tmp_path / "out")
    [failing] = [verdict.words for verdict in verify(tmp_path / "out") if not verdict.holds]
    assert failing.startswith("the released rows are the fit of the measurements")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "to", "said"),
    [
        ("worst_gap", lambda found: found * 100 + 1, "FAILS"),
        ("most_sweeps", lambda found: 2 * found + 1, "FAILS"),
        ("kappa", lambda found: 2 * found, "FAILS"),
        ("passes", lambda found: 3 - found, "FAILS"),
        ("fallbacks", lambda found: [["a", "the true number is 12"]], "FAILS"),
        ("fallbacks", lambda found: [["a", "no integers keep the constraints"]], "FAILS"),
        ("worst_gap", lambda found: found * (1 + 1e-9) + 1e-15, "open"),
    ],
)
def test_reports_of_a_fit_are_those_of_the_fit_that_is_made_again(made, tmp_path, name, to, said):
    def change(path: Path) -> None:
        fields = json.loads(path.read_text())
        fields["fit"][1][name] = to(fields["fit"][1][name])
        path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")

    rewrite(tmp_path / "out", "certificate.json", change)
    lines = [line for line in map(str, verify(tmp_path / "out")) if "the fit" in line]
    assert [line[:5].strip() for line in lines] == [said]


def test_a_changed_file_is_noticed_by_the_manifest(made, tmp_path):
    lose_a_measurement(tmp_path / "out" / "persons.parquet")
    [verdict] = verify(tmp_path / "out")
    assert not verdict.holds and "persons.parquet is not the file that was released" in verdict.words
