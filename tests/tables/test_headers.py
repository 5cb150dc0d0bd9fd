"""CSV files without a header line: refused without a word of their first record, and read where names are given."""

from __future__ import annotations

import bz2
import gzip

import pytest
from reading_tools import SECRET, cells, refused, write

from stirred.errors import StirredError
from stirred.lab.study.study_file import read_data, read_study
from stirred.survey.plan.draft import draft_plan as survey_draft
from stirred.swap.checking.plan_check import check
from stirred.swap.plan.draft import draft_plan as swap_draft
from stirred.swap.plan.fields import SwapPlan
from stirred.tables import open_input
from stirred.tables.reading.first_look import form_of
from stirred.topdown.plan.draft import draft_plan as topdown_draft

RECORDS = f"h1,MA,1,{SECRET}\nh2,MA,2,{SECRET}\nh3,NH,2,Coos\n"
NAMES = ["id", "state", "size", "county"]
COLUMNS = {
    "id": ["h1", "h2", "h3"],
    "state": ["MA", "MA", "NH"],
    "size": ["1", "2", "2"],
    "county": [SECRET, SECRET, "Coos"],
}


@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET}\n{SECRET}\n",  # a name that is a value of its column
        f"{SECRET},7\nx,8\n",  # a number
        f"{SECRET},-1.5e3\nx,y\n",
        f"{SECRET},2019-07-01\nx,y\n",
        f"{SECRET},25-00503\nx,y\n",
        RECORDS,
    ],
)
def test_a_first_line_that_looks_like_a_record_is_refused_and_not_quoted(tmp_path, text):
    shown = str(refused("header-is-record", write(tmp_path / "a.csv", text)))
    assert "header = false" in shown and "names = [...]" in shown and "header = true" in shown
    assert "25-00503" not in shown and "2019" not in shown and "1.5" not in shown


def test_repeated_empty_and_broken_names_offer_the_same_way_out(tmp_path):
    for kind, text in (
        ("duplicate-column", "x,x\na,b\n"),
        ("nameless-column", "x,\na,b\n"),
        ("column-name", '"x\ny",z\na,b\n'),
    ):
        assert "header = false" in str(refused(kind, write(tmp_path / "a.csv", text)))


@pytest.mark.parametrize("text", ["a,b2,c_3\n1,2,3\n", "_1,V1\n1,2\n", "county\nEssex\nEssex\n", "-,a\n1,2\n"])
def test_a_header_is_taken_for_a_header(tmp_path, text):
    assert list(cells(write(tmp_path / "a.csv", text))) == text.split("\n")[0].split(",")


def test_a_header_of_years_is_read_once_the_plan_says_that_it_is_one(tmp_path):
    path = write(tmp_path / "a.csv", "place,2010,2011\nx,1,2\n")
    refused("header-is-record", path)
    assert cells(path, header=True) == {"place": ["x"], "2010": ["1"], "2011": ["2"]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_without_a_header_every_line_is_a_record(tmp_path, encoding):
    path = write(tmp_path / "a.csv", RECORDS.encode(encoding))
    assert cells(path, header=False, names=NAMES, encoding=encoding) == COLUMNS
    typed = cells(path, header=False, names=NAMES, encoding=encoding, types={"size": "integer"})
    assert typed == COLUMNS | {"size": [1, 2, 2]}


def test_several_files_without_headers_are_one_table(tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, RECORDS)
    assert cells(tmp_path, header=False, names=NAMES) == {name: values * 2 for name, values in COLUMNS.items()}
    write(tmp_path / "c.csv", "h1,MA\n")
    refused("mixed-formats", tmp_path, header=False, names=NAMES)


def test_a_file_of_many_blocks_without_a_header_loses_no_line(tmp_path):
    path = write(tmp_path / "a.csv", "".join(f"{number},{'x' * 90}\n" for number in range(200_000)))  # over one block
    opened = open_input("rows", path, form_of(path, names=["n", "text"]).options())
    assert sum(batch.num_rows for batch in opened.batches(["n"])) == 200_000


def test_lines_of_messages_are_counted_from_the_first_record(tmp_path):
    path = write(tmp_path / "a.csv", f"x,{SECRET}\n1,2\n")
    assert "The first is in line 1 of" in str(
        refused("wrong-type", path, header=False, names=["a", "b"], types={"a": "integer"})
    )
    path = write(tmp_path / "a.csv", f"x,y\n1,2,{SECRET}\n")
    assert "Line 2 of" in str(refused("ragged-csv", path, header=False, names=["a", "b"]))


def test_drafts_refuse_and_take_names(tmp_path):
    path = write(tmp_path / "a.csv", RECORDS)
    places = write(tmp_path / "places.csv", "state,county\nMA,x\nNH,y\n")
    for draft, more in ((swap_draft, {}), (survey_draft, {}), (topdown_draft, {"geography": places})):
        with pytest.raises(StirredError, match="looks like a record") as caught:
            draft(path, folder=tmp_path, **more)
        assert SECRET not in str(caught.value)
        text = draft(path, folder=tmp_path, names=NAMES, **more)
        assert 'header = false\nnames = ["id", "state", "size", "county"]' in text
        assert SECRET not in text
    years = write(tmp_path / "years.csv", "county,2010\nx,1\n")
    for draft, more in ((swap_draft, {}), (survey_draft, {}), (topdown_draft, {"geography": places})):
        assert "header = true" in draft(years, folder=tmp_path, header=True, **more)


def test_a_draft_of_a_linked_file_without_a_header_is_refused(tmp_path):
    main, linked = (
        write(tmp_path / "a.csv", "id,county\nh1,x\n"),
        write(tmp_path / "b.csv", f"h1,{SECRET}\nh1,{SECRET}\n"),
    )
    with pytest.raises(StirredError, match="looks like a record") as caught:
        swap_draft(main, tmp_path, linked=linked)
    assert SECRET not in str(caught.value)


def test_a_plan_with_names_is_checked_as_if_the_file_had_a_header(tmp_path):
    rows = "".join(f"h{n},{'ab'[n % 2]},{n % 3},{'xy'[n % 5 // 3]}\n" for n in range(60))
    write(tmp_path / "with.csv", "id,state,size,county\n" + rows)
    write(tmp_path / "without.csv", rows)
    fields = {
        "match": ["state"],
        "swap": ["county"],
        "hold": ["size"],
        "id": "id",
        "rate": "1/2",
        "chosen_from": "public",
    }
    first = check(SwapPlan(**fields, input={"path": str(tmp_path / "with.csv")}))
    plan = SwapPlan(**fields, input={"path": str(tmp_path / "without.csv"), "header": False, "names": NAMES})
    assert str(check(plan)) == str(first)
    assert plan.published() == SwapPlan(**fields).published()
    assert SwapPlan.from_published(plan.published()).hash() == plan.hash()


def test_a_study_reads_a_file_by_the_section_of_its_table(tmp_path):
    write(tmp_path / "a.csv", "".join(f"{'xy'[n % 2]},{n % 3},{n % 4}\n" for n in range(60)))
    study = 'stirred_study = 1\ndraws = 2\nseed = 1\ntables = [["county"]]\n[data]\nfiles = {rows = "a.csv"}\n%s'
    swapper = '[[swapper]]\nkind = "record-swap"\nhierarchy = ["county"]\nsimilar = [["size"]]\n'
    section = '[data.input.rows]\nheader = false\nnames = ["county", "size", "age"]\n'
    (tmp_path / "s.toml").write_text(study % section + swapper)
    assert read_data(read_study(tmp_path / "s.toml")).records.height == 60
    for wrong in ("[data.input.other]\nheader = false\n", "[data.input.rows]\nheadr = false\n", 'input = "x"\n'):
        (tmp_path / "s.toml").write_text(study % wrong + swapper)
        with pytest.raises(StirredError, match=r"data\.input"):
            read_data(read_study(tmp_path / "s.toml"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(RECORDS.encode(), mtime=0), "a gzip file. Name it a.csv.gz"),
        (bz2.compress(RECORDS.encode()), "a bzip2 file. Name it a.csv.bz2"),
        (b"PK\x03\x04\x14\x00" + SECRET.encode(), "an Excel workbook or another zip file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1" + SECRET.encode(), "an Excel workbook of the older kind"),
        (b"PAR1\x15\x04" + SECRET.encode(), "a Parquet file"),
    ],
    ids=["gzip", "bzip2", "xlsx", "xls", "parquet"],
)
def test_bytes_of_another_format_are_named(tmp_path, content, words):
    assert words in str(refused("unreadable-file", write(tmp_path / "a.csv", content)))


def test_an_empty_folder_and_one_of_hidden_files_are_named(tmp_path):
    assert "has no file to read" in str(refused("empty-folder", tmp_path))
    write(tmp_path / ".a.csv", RECORDS)
    refused("empty-folder", tmp_path)


def test_lines_are_read_up_to_sixteen_mebibytes_and_never_above_thirty_two(tmp_path):
    path = tmp_path / "a.csv"
    for before in (0, 9, 15):
        start = b"text\n" + (b"x" * 999 + b"\n") * (before * 1048)
        path.write_bytes(start + b"y" * ((16 << 20) - 1) + b"\nz\n")
        assert len(cells(path)["text"]) == before * 1048 + 2
    path.write_bytes(b"text\nx\n" + b"y" * (32 << 20) + b"\nz\n")
    assert "a line longer than 16 MiB" in str(refused("line-too-long", path))
