"""Every published number has a row, every row keeps its verdict, and every erratum has a test.

The list is ``tests/golden/published/*.toml``. What it expects of each item follows from its fields: an item with an
erratum must disagree as printed and agree as corrected, any other must agree; an input must be held as printed.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from stirred.errors import StirredError
from stirred.lab.reproduce.catalogue import (
    MODULES,
    Between,
    chosen,
    computations,
    documents,
    errata,
    items,
    row_id,
)
from stirred.lab.reproduce.verdicts import Reproduction, holds, page, reproduce, row_of, row_of_erratum, shown

ROOT = Path(__file__).parents[3]
LIST = ROOT / "tests" / "golden" / "published"


@cache
def everything() -> Reproduction:
    return reproduce()


def test_no_row_changes_its_verdict():
    expected = {item.id: item.expected for item in items().values()}
    found = {row.id: row.verdict for row in everything().rows if row.id in expected}
    assert found == expected


def test_every_item_and_every_erratum_has_a_row():
    rows = [row.id for row in everything().rows]
    assert len(rows) == len(set(rows))
    assert set(items()) <= set(rows)
    told = {f"{item.document}/{item.erratum}" for item in items().values() if item.erratum}
    alone = {row.id.replace("/erratum/", "/") for row in everything().rows if "/erratum/" in row.id}
    assert told | alone == set(errata())


def test_nothing_differs_and_the_result_says_so():
    assert everything().holds


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", list(errata()))
def test_every_erratum_has_a_test_a_reason_and_something_that_shows_it(name):
    erratum = errata()[name]
    assert erratum.why and erratum.printed and erratum.correct and erratum.tests
    for test in erratum.tests:
        path, _, function = test.partition("::")
        assert function.partition("[")[0] in _functions(path), test
    with_number = any(f"{item.document}/{item.erratum}" == name for item in items().values() if item.erratum)
    assert with_number or erratum.demonstrated_by or erratum.misprint


def test_every_item_is_computed_or_says_why_not():
    for item in items().values():
        assert item.document in documents()
        assert item.computed_by in computations() or item.cannot or item.missing, item.id
        assert bool(item.erratum) == bool(item.corrected), item.id
        assert item.published or item.draws, item.id
        if item.erratum:
            assert f"{item.document}/{item.erratum}" in errata(), item.id


def test_no_computation_is_left_over():
    for module in MODULES:
        tree = ast.parse((ROOT / "src" / "stirred" / "lab" / "reproduce" / f"{module}.py").read_text(encoding="utf-8"))
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        written = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert written <= set(computations()) | read, module


def test_the_page_and_the_file_are_those_of_the_list():
    assert (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8") == page(everything()), "run make reproduced"
    assert (ROOT / "docs" / "reproduced-rows.json").read_text(encoding="utf-8") == everything().to_json()


def test_the_json_has_all_rows():
    fields = json.loads(everything().to_json())
    assert [row["id"] for row in fields["rows"]] == [row.id for row in everything().rows]


# -- the comparison itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "printed", "value", "agrees"),
    [
        ("rounds to", "0.148", 0.1480066, True),
        ("rounds to", "0.148", 0.1474, False),
        ("rounds to", "12.48", 12.484999, True),
        ("rounds to", "2.5e-4", 2.549e-4, True),
        ("rounds to", "2.5e-4", 2.56e-4, False),
        ("rounds to", "0.74", Between(0.7416, 0.7418), True),
        ("rounds to", "0.74", Between(0.73, 0.75), False),
        ("rounds to", "infinity", float("inf"), True),
        ("rounds to", "5", float("inf"), False),
        ("at most", "0.148", 0.1480066, False),
        ("more than", "0.4", 0.436, True),
        ("equals", "263/100", 2.63, False),
        ("equals", "1/4", 0.25, True),
        ("rounds to", "2 ln 8", 4.1588830833596715, True),
        ("rounds to", "ln 36", 3.5835, False),
        ("rounds to", "yes", True, True),
        ("rounds to", "yes", False, False),
    ],
)
def test_a_value_agrees_if_it_stands_to_the_printed_digits_as_it_should(relation, printed, value, agrees):
    assert holds(relation, printed, value) is agrees


def test_a_changed_number_is_noticed():
    item = items()["thesis/table-3.2/0.05"]
    assert row_of(item).verdict == "agrees"
    assert row_of(replace(item, published="15.42")).verdict == "differs"
    assert row_of(replace(item, further="15.4295")).verdict == "differs"
    # An erratum that is none: the printed number is right.
    assert row_of(replace(item, corrected="15.43", erratum="any")).verdict == "agrees"


def test_items_are_chosen_by_document_table_number_or_pattern():
    found, alone = chosen(["thesis"])
    assert {one.document for one in (*found, *alone)} == {"thesis"} and alone
    table = [item.id for item in chosen(["table-3.2"])[0]]
    assert table == [item.id for item in chosen(["thesis/table-3.2"])[0]] and len(table) == 4
    assert [item.id for item in chosen(["table-3.2/0.0*"])[0]] == table[:2]
    assert [row_id(one) for one in chosen([row_id(alone[0])])[1]] == [row_id(alone[0])]
    with pytest.raises(StirredError, match="no published item 'table-99'"):
        chosen(["table-99"])


def test_ours_is_shown_with_two_more_digits():
    assert shown(15.4294493, "15.43") == "15.4294"
    assert shown(2.94321e-11, "3e-11") == "2.94e-11"
    assert shown(0.353862, "35.4%") == "35.386%"
    assert shown(3.5835189384561104, "ln 36") == "3.583519"
    assert (shown(1 / 6, "1/6"), shown(2**-0.5, "1/2")) == ("1/6", "0.707106781")


def test_errata_alone_show_both_forms():
    for erratum in errata().values():
        assert row_of_erratum(erratum).verdict == ("unclear" if erratum.unclear else "erratum")


def test_what_need_not_be_wrong_is_not_called_wrong():
    for row in everything().rows:
        if row.id.startswith("thesis/erratum/figure-5.4-outputs"):
            assert (row.verdict, "wrong" in row.what) == ("unclear", False)
    assert everything().counts["unclear"] < everything().counts["erratum"]
    # 52.83 is printed from a rho with more digits than the printed 15.29.
    assert row_of(items()["thesis/table-3.3/epsilon/total"]).verdict == "unclear"
    assert row_of(items()["thesis/table-3.3/epsilon/pl-household"]).verdict == "agrees"


def test_what_is_read_back_is_not_counted_as_computed():
    item = items()["semantics-paper/table-5/total/us"]
    assert row_of(item).verdict == "input"
    assert row_of(replace(item, published="1/4097")).verdict == "differs"


def test_only_numbers_are_said_to_round():
    for row in everything().rows:
        if row.relation == "rounds to":
            assert any(sign.isdigit() for sign in row.published) or row.published == "infinity", row.id
        assert row.relation or row.verdict not in ("agrees", "input"), row.id


def test_one_item_is_called_one_item():
    assert reproduce(["thesis/table-3.2/0.05"]).text().endswith("1 published item: 1 agrees.\n")


def test_no_folder_is_made_for_figures_where_none_is_asked_for(command, tmp_path):
    ended = command("reproduce", "thesis/table-3.2/0.05", "--figures", tmp_path / "new")
    assert ended.code == 0 and "none of these items is a figure" in ended.err
    assert not (tmp_path / "new").exists()
