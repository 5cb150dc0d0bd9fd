"""The form of CSV files, told from real bytes: marks, encodings, line ends, separators, decimal commas."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from reading_tools import SECRET, cells, write

from stirred.errors import StirredError
from stirred.tables import InputOptions, open_input
from stirred.tables.reading.csv_files import typed
from stirred.tables.reading.first_look import Form, form_of, look
from stirred.tables.reading.inputs import Rewritten
from stirred.tables.reading.table_reader import read_table

GERMAN = "größe;stadt;einkommen\r\n2;Fürth;1,50\r\n10;Köln;-2,25\r\n"
ROWS = [("2", "Fürth", "1,50"), ("10", "Köln", "-2,25")]


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", None),
        ("utf-8-sig", "utf-8-sig"),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_encoding_delimiter_and_decimal_comma_are_told_and_read_cell_for_cell(tmp_path, encoding, told, suffix):
    content = GERMAN.encode(encoding)
    path = write(tmp_path / f"a{suffix}", gzip.compress(content) if suffix == ".csv.gz" else content)
    form = form_of(path)
    assert form == Form(";", told, ",")
    opened = open_input("people", path, form.options())
    table = read_table(opened, list(opened.kinds)).table
    assert list(table.columns) == ["größe", "stadt", "einkommen"]
    found = [column.decode(column.codes).to_pylist() for column in table.columns.values()]
    assert list(zip(*found, strict=True)) == ROWS


def test_utf_16_with_the_other_byte_order_is_told_by_its_mark(tmp_path):
    path = write(tmp_path / "a.csv", b"\xfe\xff" + GERMAN.encode("utf-16-be"))
    assert form_of(path) == Form(";", "utf-16", ",")


def test_bytes_that_cp1252_does_not_have_are_latin_1(tmp_path):
    assert form_of(write(tmp_path / "a.csv", b"a,b\n\x81,\xe9\n")).encoding == "latin-1"
    assert form_of(write(tmp_path / "a.csv", b"a,b\n\x80,\xe9\n")).encoding == "cp1252"


def test_a_byte_that_is_not_utf_8_is_found_far_from_the_start(tmp_path):
    path = write(tmp_path / "a.csv", b"a,b\n" + b"x,y\n" * 500_000 + b"F\xfcrth,y\n")
    assert form_of(path).encoding == "cp1252"


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", None),
        ("a;b;c\n1;2;3\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('"a;x",b\n"1;2",3\n', None),
        ('"a,x";b\n"1,2";3\n', ";"),
        ("a\n1\n", None),
        ("a, in km;b, in m\n1;2\n", ";"),
        ("a;b\n1;2;3\n", ";"),
        ("a;b,c;d\n1;2,3;4\n5;6;7\n", ";"),
        ('a;b\n"two\nlines; x";2\n', ";"),
    ],
)
def test_the_delimiter_splits_header_and_lines_alike(tmp_path, text, delimiter):
    assert form_of(write(tmp_path / "a.csv", text)).delimiter == delimiter


def test_a_tsv_file_needs_no_line_for_its_tabs_and_one_for_other_signs(tmp_path):
    assert form_of(write(tmp_path / "a.tsv", "a\tb\n1\t2\n")).delimiter is None
    assert form_of(write(tmp_path / "b.tsv", "a,b\n1,2\n")).delimiter == ","


@pytest.mark.parametrize(
    ("field", "decimal"),
    [("1,5", ","), ("-0,25", ","), ("1.5", None), ("1,000", None), ("x,y", None), ("1,5\n1.5", None)],
)
def test_a_decimal_comma_is_told_where_no_point_contradicts_it(tmp_path, field, decimal):
    lines = "".join(f"u;{one}\n" for one in field.split("\n"))
    assert form_of(write(tmp_path / "a.csv", f"a;b\n{lines}")).decimal == decimal


def test_what_is_given_is_not_looked_for(tmp_path):
    path = write(tmp_path / "a.csv", GERMAN.encode("cp1252"))
    assert form_of(path, "|", "latin-1") == Form("|", "latin-1", None)
    with pytest.raises(StirredError) as caught:
        form_of(path, encoding="utf-8")
    assert caught.value.kind == "not-utf8"
    with pytest.raises(StirredError) as caught:
        form_of(path, encoding="klingon")
    assert caught.value.kind == "plan-field"


def test_other_formats_have_no_form(tmp_path):
    assert form_of(write(tmp_path / "a.parquet", b"PAR1")) == Form()


# -- numbers, and their texts ------------------------------------------------------------------------------------


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path):
    path = write(tmp_path / "a.csv", "a;b\n1,5;x\n-2;y\n;z\n")
    options = {"delimiter": ";", "decimal": ",", "types": {"a": "number"}}
    assert cells(path, **options)["a"] == [1.5, -2.0, None]


def test_a_decimal_point_is_no_number_where_commas_are(tmp_path):
    with pytest.raises(ValueError):
        typed(pa.array(["1.5"]), pa.float64(), ",")
    with pytest.raises(StirredError) as caught:
        cells(write(tmp_path / "a.csv", f"a;b\n1.5;{SECRET}\n"), delimiter=";", decimal=",", types={"a": "number"})
    assert caught.value.kind == "wrong-type"


@pytest.mark.parametrize(
    ("kind", "kept", "changed"),
    [
        ("integer", ["1", "0", "-7", "120"], ["01", "-0", " 1", "0x1F"]),
        ("number", ["1.5", "-0.25", "2.0"], ["1.50", "01.5", "2", ".5", "+1.5", "1e3", "0.1000000000000000055"]),
        ("boolean", ["true", "false"], ["TRUE", "1", "0", "False"]),
        ("date", ["2020-02-29"], []),
        ("text", ["01", "1.50", " x"], []),
    ],
)
def test_cells_whose_type_changes_their_text_are_counted(tmp_path, kind, kept, changed):
    lost = [text for text in changed if text != "2" and kind != "boolean"]
    texts = [*kept, *changed, *changed]
    path = write(tmp_path / "a.csv", "a,b\n" + "".join(f"{text},x\n" for text in texts))
    opened = open_input("people", path, InputOptions(types={"a": kind}))
    for _ in range(2):  # a second reading starts from nothing
        read_table(opened, ["a", "b"])
        assert opened.rewritten == ({"a": Rewritten(2 * len(changed), 2 * len(lost))} if changed else {})


@pytest.mark.parametrize("kind", ["text", "integer", "number", "boolean", "date"])
def test_quoted_nulls_are_null_in_columns_of_every_type_and_in_ids(tmp_path, kind):
    value = {"text": "x", "integer": "1", "number": "1.5", "boolean": "true", "date": "2020-01-01"}[kind]
    path = write(tmp_path / "a.csv", f'a,b\r\n"NA","{value}"\r\nNA,{value}\r\n,x\r\n"{value}",x\r\n')
    options = InputOptions(types={"a": kind}, null_values=("NA",))
    opened = open_input("people", path, options)
    column = read_table(opened, ["a"]).table["a"]
    assert column.decode(column.codes).is_valid().to_pylist() == [False, False, False, True]
    identifiers = read_table(opened, ["b"], ["a"]).identifiers["a"]
    assert identifiers.is_valid().to_pylist() == [False, False, False, True]


def test_marks_that_are_part_of_cells_do_not_make_nulls(tmp_path):
    path = write(tmp_path / "a.csv", 'a,b\n"NA",1\nNA,2\n')
    assert cells(path, null_values=("NA",), quotes=False)["a"] == ['"NA"', None]


# -- looking at cells ---------------------------------------------------------------------------------------------


def test_looking_proposes_only_types_that_change_no_text(tmp_path):
    text = "id;county;size;rate;share;when\n1;001;2;1,5;1,50;\n2;002;10;NA;2,5;x\n"
    path = write(tmp_path / "a.csv", text)
    form = form_of(path)
    found = look("people", path, form)
    assert found.types == {"id": "integer", "size": "integer", "rate": "number"}
    assert found.null_values == ("NA",)
    assert found.nulls == ("rate", "when")
    opened = open_input("people", path, found.options(form))
    read = read_table(opened, list(opened.kinds))
    assert opened.rewritten == {}
    assert tuple(name for name in opened.kinds if name in read.nulls) == found.nulls
