"""A release folder from a stranger: what is named, what is refused before it is opened, what is bounded."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stirred
from stirred import _bounded_reading
from stirred.errors import StirredError
from stirred.noise import SeededSource
from stirred.releases.folder import release_folder
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.verdicts import State, Verdict, Verdicts, not_checked, not_compared
from stirred.swap.drawing import draw

ROWS = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
PLAN = stirred.SwapPlan(
    match=["size"], swap=["county"], hold=["tenure"], rate=0.1, most_recovered=1, publish=[["county"]]
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "release"
    stirred.release(PLAN, ROWS, out=folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "release")


def failing(folder: Path) -> str:
    return "\n".join(one.words for one in stirred.verify(folder) if one.state is State.CONTRADICTED)


def read_released(path: Path) -> pa.Table:
    return pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()


def rewrite(path: Path, table: pa.Table, store_schema: bool = False) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, store_schema=store_schema)
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)


def change(path: Path, **fields) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_release_holds_and_says_that_it_is_not_signed(folder):
    verdicts = stirred.verify(folder)
    assert all(verdict.holds for verdict in verdicts), str(verdicts)
    assert verdicts.state is State.HOLDS
    assert [verdict.words for verdict in verdicts if verdict.state is State.NOTE] == [
        "not signed: the folder does not show who published it"
    ]


def test_a_release_from_a_repeatable_source_fails_with_its_first_line(tmp_path):
    drawn = draw(PLAN, ROWS, source=SeededSource(1))
    first, *others = stirred.verify(drawn.write(tmp_path / "out", for_tests=True))
    assert not first.holds and "not: it was drawn from a source of randomness that can be repeated" in first.words
    assert all(verdict.holds for verdict in others)


def test_a_topdown_release_from_a_repeatable_source_fails_with_its_first_line(tmp_path):
    places = pl.DataFrame({"county": ["A", "A"], "town": ["x", "y"]})
    people = pl.DataFrame({"town": ["x"] * 30 + ["y"] * 10, "race": "a", "adult": ["yes", "no"] * 20})
    plan = stirred.topdown.preset("teaching", {"race": ["a"], "adult": ["yes", "no"]}, ["county", "town"])
    drawn = stirred.topdown.draw(
        plan, {"persons": people, "geography": places}, work=tmp_path / "work", source=SeededSource(1)
    )
    first, *others = stirred.verify(drawn.finish().write(tmp_path / "out", for_tests=True))
    assert not first.holds and "repeated" in first.words
    assert all(verdict.holds for verdict in others)


# -- content that belongs to nobody --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["notes.txt", ".notes", "tables/true_counts.csv", ".git/config", "tables/.hidden"])
@pytest.mark.parametrize("listed", [False, True])
def test_an_extra_file_is_named_whether_or_not_the_manifest_lists_it(folder, name, listed):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("true counts")
    if listed:
        write_manifest(folder)
    assert name in failing(folder)
    assert ("not part of the release" if listed else "is not in the manifest") in failing(folder)


def test_a_topdown_release_without_invariants_holds(tmp_path):
    plan = stirred.TopDownPlan(
        spine={"levels": ["town"]},
        tables=[
            {
                "name": "persons",
                "unit": "person",
                "attributes": [{"name": "adult", "values": ["yes", "no"]}],
                "rho": "1/2",
                "level_shares": {"town": "1"},
                "queries": [{"by": ["adult"], "shares": "1"}],
            }
        ],
    )
    data = {
        "persons": pl.DataFrame({"town": ["x", "y"], "adult": ["yes", "no"]}),
        "geography": pl.DataFrame({"town": ["x", "y"]}),
    }
    stirred.release(plan, data, out=tmp_path / "out", work=tmp_path / "work")
    assert failing(tmp_path / "out") == "" and not (tmp_path / "out" / "invariants").exists()
    stirred.release(plan, out=tmp_path / "again", work=tmp_path / "work")
    (tmp_path / "out" / "invariants").mkdir()  # as earlier versions made it
    assert failing(tmp_path / "out") == ""


def test_an_empty_folder_is_named(folder):
    (folder / "more").mkdir()
    assert failing(folder) == "the folder more is not in the manifest"


def test_a_field_that_a_certificate_does_not_have_is_named(folder):
    change(folder / "certificate.json", true_counts=[1, 2, 3])
    write_manifest(folder)
    assert "(not so: true_counts)" in failing(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("released_on", "today: 17"), ("versions", {"stirred": stirred.__version__}), ("nonce", "x"), ("nonce", None)],
)
def test_a_field_of_another_form_is_noticed(folder, name, value):
    change(folder / "certificate.json", **{name: value})
    write_manifest(folder)
    assert "the certificate states the day, the versions of the programs and the nonce" in failing(folder)


def test_another_readme_is_noticed_if_this_version_wrote_it(folder):
    text = (folder / "README.txt").read_text()
    (folder / "README.txt").write_text(text.replace("at most exp(d x", "at most (d x"))
    write_manifest(folder)
    words = "every document is the text that goes with the plan and the guarantee"
    assert failing(folder) == f"{words} (not so: README.txt)"


def test_of_a_release_of_another_version_the_readme_is_said_to_be_not_compared(folder):
    stated = json.loads((folder / "certificate.json").read_text())["versions"] | {"stirred": "99.0.0"}
    change(folder / "certificate.json", versions=stated)
    write_manifest(folder)
    assert failing(folder) == ""
    verdicts = stirred.verify(folder)
    assert verdicts.state is State.NOT_COMPARED and not all(verdict.holds for verdict in verdicts)
    assert [verdict.words for verdict in verdicts if verdict.state is State.NOT_COMPARED] == [
        "how the tables store their values: not compared, since other versions of the programs wrote them",
        "README.txt and the sentences of the other documents: not compared, since version 99.0.0 wrote them",
        "report.html: not compared, since another version wrote it",
    ]
    assert verdicts.answer == (
        "Nothing contradicts, but not everything was compared. Not compared: how the tables store their values; "
        "README.txt and the sentences of the other documents; report.html."
    )
    assert str(verdicts).splitlines()[0] == verdicts.answer


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_text_beside_the_columns_of_a_file_is_noticed(tmp_path, form):
    folder = tmp_path / "release"
    stirred.release(PLAN.model_copy(update={"format": form}), ROWS, out=folder)
    assert failing(folder) == ""
    path = folder / f"microdata.{form}"
    read = read_released(path)
    for noted in (read.replace_schema_metadata({"true_counts": "1,2,3"}), with_note_on_a_column(read)):
        rewrite(path, noted, store_schema=True)
        write_manifest(folder)
        assert failing(folder).splitlines() == [
            f"microdata.{form} carries no notes beside its columns",
            f"every table stores its values as a release does, and nothing else (not so: microdata.{form})",
        ]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_an_entry_of_a_dictionary_that_no_row_uses_is_noticed(tmp_path, form):
    """Programs that show categories would show it."""
    folder = tmp_path / "release"
    stirred.release(PLAN.model_copy(update={"format": form}), ROWS, out=folder)
    path = folder / f"microdata.{form}"
    read = read_released(path)
    at = read.column_names.index("tenure")
    coded = read.column(at).combine_chunks().dictionary_encode()
    hidden = pa.DictionaryArray.from_arrays(coded.indices, pa.concat_arrays([coded.dictionary, pa.array(["Jane Doe"])]))
    written = read.set_column(at, "tenure", hidden)
    rewrite(path, written)
    write_manifest(folder)
    assert f"(not so: microdata.{form})" in failing(folder)


def test_a_field_that_a_manifest_does_not_have_is_refused(folder):
    change(folder / "manifest.json", true_counts=[1, 2, 3])
    with pytest.raises(StirredError, match="fields that no manifest has"):
        stirred.verify(folder)


@pytest.mark.parametrize(
    "rows",
    [
        pl.DataFrame({"county": ["a", "b"] * 5} | {f"v{number}": [1, 2] * 5 for number in range(130)}),
        pytest.param(
            pl.DataFrame({"county": ["a", "b"] * 5} | {f"v{number}": [1, 2] * 5 for number in range(1_500)}),
            marks=pytest.mark.slow,
        ),
        pl.DataFrame({"county": ["a", "b"] * 5} | {f"{'long' * 200}{number}": [1, 2] * 5 for number in range(30)}),
        pl.DataFrame({"county": ["a", "b"] * 5, "text": [f"{number}" * 300_000 for number in range(10)]}),
    ],
    ids=["many columns", "very many columns", "long names", "long cells"],
)
def test_wide_and_long_tables_hold_as_well(tmp_path, rows):
    plan = stirred.SwapPlan(
        swap=["county"], hold="rest", rate=0.5, allow=["distinct:text"] if "text" in rows.columns else []
    )
    stirred.release(plan, rows, out=tmp_path / "out")
    assert failing(tmp_path / "out") == ""


def with_note_on_a_column(table: pa.Table) -> pa.Table:
    field = table.schema.field(0).with_metadata({"true_counts": "1,2,3"})
    return table.cast(pa.schema([field, *list(table.schema)[1:]]))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_column_of_another_type_is_noticed(tmp_path, form):
    folder = tmp_path / "release"
    stirred.release(PLAN.model_copy(update={"format": form}), ROWS, out=folder)
    path = folder / f"microdata.{form}"
    read = read_released(path)
    other = read.set_column(0, read.column_names[0], read.column(0).cast(pa.int16()))
    rewrite(path, other)
    write_manifest(folder)
    assert "microdata has the columns of the data dictionary" in failing(folder)


# -- nothing outside -----------------------------------------------------------------------------------------------


def as_link(path: Path, tmp_path: Path) -> None:
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")


def as_pipe(path: Path, tmp_path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_device(path: Path, tmp_path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", [as_link, as_pipe, as_device])
@pytest.mark.parametrize("name", ["microdata.parquet", "README.txt", "tables/county.csv"])
def test_a_file_that_is_none_is_named_and_never_opened(tmp_path, folder, name, kind):
    name = name if (folder / name).exists() else "microdata.arrow"
    kind(folder / name, tmp_path)
    assert f"{name} is a " in failing(folder) and "not a file that can be checked" in failing(folder)


@pytest.mark.parametrize("kind", [as_link, as_pipe, as_device])
@pytest.mark.parametrize("name", ["manifest.json", "certificate.json", "data_dictionary.json"])
def test_a_document_that_is_no_file_is_refused_and_never_opened(tmp_path, folder, name, kind):
    kind(folder / name, tmp_path)
    with pytest.raises(StirredError, match="it has no readable"):
        stirred.verify(folder)


def test_a_folder_that_is_a_link_is_named(tmp_path, folder):
    shutil.move(folder / "tables", tmp_path / "elsewhere")
    (folder / "tables").symlink_to(tmp_path / "elsewhere")
    assert "tables is a link" in failing(folder)


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/hostname", "tables/../../outside", "a\\..\\b", "", "\0", "x" * 5000]
)
def test_a_manifest_that_points_outside_does_not_hold(tmp_path, folder, path):
    (tmp_path / "outside").write_text("not yours")
    fields = json.loads((folder / "manifest.json").read_text())
    fields["files"].append({"path": path, "bytes": 9, "sha256": "0" * 64})
    change(folder / "manifest.json", files=fields["files"])
    assert "is missing" in failing(folder)


@pytest.mark.parametrize("file", ["../outside.parquet", "/etc/hostname", "tables/county.csv"])
def test_a_data_dictionary_that_points_elsewhere_does_not_hold(folder, file):
    fields = json.loads((folder / "data_dictionary.json").read_text())
    fields["tables"][0]["file"] = file
    change(folder / "data_dictionary.json", tables=fields["tables"])
    write_manifest(folder)
    assert "names a file that is not its own" in failing(folder)
    with pytest.raises(StirredError, match="names a file that is not its own"):
        stirred.tabulate(folder, ["county"])


# -- nothing unbounded ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["manifest.json", "certificate.json", "data_dictionary.json"])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        "1" * 200_000,
        '{"stirred_manifest": 1, "files": [{"path": "a", "bytes": 1e999, "sha256": ""}]}',
        '{"stirred_manifest": 1e999}',
        '{"stirred_certificate": 1, "stirred_certificate": 1}',
        "\xff",
        "",
        "null",
        "[]",
        "NaN",
    ],
)
def test_a_document_beyond_all_bounds_is_refused(folder, name, text):
    (folder / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(StirredError) as refused:
        stirred.verify(folder)
    assert refused.value.kind == "not-a-release"


def test_a_file_in_a_release_is_told_to_name_the_folder(folder):
    for run in (stirred.verify, stirred.estimate):
        with pytest.raises(StirredError, match=r"it is a file\. Name the folder"):
            run(folder / "certificate.json")


@pytest.mark.parametrize("tables", [None, [], [{}], [{"name": 1}], {"name": "microdata"}, ["microdata"]])
def test_a_data_dictionary_without_tables_is_refused(folder, tables):
    change(folder / "data_dictionary.json", tables=tables)
    with pytest.raises(StirredError) as refused:
        stirred.verify(folder)
    assert refused.value.kind == "not-a-release"


def test_a_dictionary_with_an_empty_list_of_values_does_not_hold(folder):
    fields = json.loads((folder / "data_dictionary.json").read_text())
    fields["tables"][0]["columns"][0]["listed"] = []
    change(folder / "data_dictionary.json", tables=fields["tables"])
    write_manifest(folder)
    assert "the data dictionary describes the tables as they are" in failing(folder)


def test_a_table_of_a_billion_rows_in_a_small_file_is_refused_before_it_is_read(written, tmp_path, monkeypatch):
    """The numbers are scaled down; the bound and the order of the steps are the same."""
    monkeypatch.setattr(release_folder, "MOST_VALUES", 1000)
    plan = PLAN.model_copy(update={"format": "parquet"})
    folder = tmp_path / "release"
    stirred.release(plan, ROWS, out=folder)
    many = pa.table({name: pa.array([ROWS[name][0]] * 2_000_000) for name in ROWS.columns})
    pq.write_table(many, folder / "microdata.parquet")
    fields = json.loads((folder / "data_dictionary.json").read_text())
    fields["tables"][0]["rows"] = len(many)
    write_manifest(folder)
    assert "more than the 60 rows" in failing(folder), "more than are stated"
    change(folder / "data_dictionary.json", tables=fields["tables"])
    write_manifest(folder)
    found = stirred.verify(folder)
    assert found.state is State.NOT_CHECKED and "has 2,000,000 rows, and at most" in str(found)
    with pytest.raises(StirredError) as refused:
        stirred.tabulate(folder, ["county"])
    assert refused.value.kind == "too-many-rows-stated"
    assert stirred.tabulate(folder, ["county"], most_rows=2_000_000).num_rows == 1


def test_a_folder_cannot_write_lines_of_its_own(folder, command):
    name = "tables/x\nholds  epsilon is 0\x1b[2K.csv"
    (folder / name).write_text("")
    ended = command("verify", folder)
    assert ended.code == 1
    assert "\x1b" not in ended.out and len(ended.out.splitlines()) == 3
    assert "x\\nholds  epsilon is 0\\x1b[2K.csv is not in the manifest" in ended.out


# -- could not be checked is no contradiction ----------------------------------------------------------------------

OF_THE_MACHINE = [
    MemoryError(),
    PermissionError(errno.EACCES, "Permission denied", "microdata.parquet"),
    OSError(errno.EIO, "Input/output error"),
    TypeError("a cell"),
    AttributeError("a cell"),
    RecursionError("a cell"),
    NotImplementedError("a cell"),
]
OF_THE_FOLDER = [ValueError("a cell"), KeyError("a cell"), ZeroDivisionError("a cell"), OSError("damaged pages")]


@pytest.mark.parametrize("problem", OF_THE_MACHINE, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("where", ["swap.verifying.read_files", "releases.folder.release_folder.ReleaseFolder.open"])
def test_what_the_machine_or_the_program_does_not_manage_is_not_said_to_be_contradicted(
    folder, problem, where, monkeypatch, command
):
    def fails(*arguments, **named):
        raise problem

    monkeypatch.setattr(f"stirred.{where}", fails)
    verdicts = stirred.verify(folder)
    assert verdicts.state is State.NOT_CHECKED and not all(verdict.holds for verdict in verdicts)
    ended = command("verify", folder)
    assert ended.code == 5 and ended.out.startswith("Could not be checked, and nothing is known to contradict: the ")
    assert "FAILS" not in ended.out and "contradict its tables" not in ended.out and "a cell" not in ended.out
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "certificate.json", "data_dictionary.json", "specification.json", "README.txt", "report.html"],
)
def test_a_document_that_may_not_be_read_here_is_not_said_to_be_missing_or_forged(folder, name, monkeypatch, command):
    read = _bounded_reading.read_bytes

    def fails(path, *most):
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *most)

    monkeypatch.setattr(_bounded_reading, "read_bytes", fails)
    ended = command("verify", folder)
    assert ended.code == 5 and "the operating system refused: Permission denied" in ended.out


@pytest.mark.parametrize(
    "where", ["releases.folder.manifest.digest_of", "tables.reading.typed_files.pa.dataset.dataset"]
)
def test_a_disk_that_fails_is_no_forgery(folder, where, monkeypatch):
    def fails(*arguments, **named):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(f"stirred.{where}", fails)
    assert stirred.verify(folder).state is State.NOT_CHECKED


@pytest.mark.parametrize("problem", OF_THE_FOLDER, ids=lambda one: type(one).__name__)
def test_what_the_folder_holds_and_cannot_be_counted_is_contradicted(folder, problem, monkeypatch):
    def fails(*arguments):
        raise problem

    monkeypatch.setattr("stirred.swap.verifying.read_files", fails)
    assert stirred.verify(folder).state is State.CONTRADICTED


def test_a_contradiction_weighs_more_than_what_could_not_be_checked():
    found = Verdicts([Verdict(False, "a"), not_checked("b", "it is large"), not_compared("c", "it is old")])
    assert found.state is State.CONTRADICTED
    assert Verdicts(found[1:]).state is State.NOT_CHECKED and Verdicts(found[2:]).state is State.NOT_COMPARED
    assert Verdicts(found[1:]).answer == "Could not be checked, and nothing is known to contradict: b."
