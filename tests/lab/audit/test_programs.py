"""Programs that are run for an audit: what they are given, what they give, and every way in which a run goes wrong."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred import errors
from stirred.lab.audit.programs import Columns, CommandProgram, callable_program

TABLE = {
    "records": pl.DataFrame(
        {
            "size": [1, 2, 3],
            "county": ["a", "b,c", 'say "d"'],
            "income": [1.5, 2.0, -3.25],
            "owner": [True, False, True],
            "day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(1999, 12, 31)],
        }
    )
}


@pytest.fixture(autouse=True)
def private(tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder for temporary folders, which must be empty again after every test."""
    place = tmp_path_factory.mktemp("private")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


def python(tmp_path: Path, code: str, **options: Any) -> CommandProgram:
    """A program in Python that gets the paths of its input and its output."""
    path = tmp_path / "program.py"
    path.write_text(f"import sys, os, time, subprocess\nread, write = sys.argv[1:3]\n{code}\n", encoding="utf-8")
    return CommandProgram(f"{sys.executable} {path} {{input}} {{output}}", **options)


def refusal(program: Any, tables: Any = None) -> errors.StirredError:
    with pytest.raises(errors.StirredError) as refused:
        program(tables or TABLE)
    return refused.value


@pytest.mark.parametrize("command", ["cp {input} {output}", "cp {input.parquet} {output.parquet}"])
def test_a_program_that_copies_gives_back_every_cell_and_type(command):
    made = CommandProgram(command)(TABLE)
    assert made["records"].equals(TABLE["records"])
    assert made["records"].schema == TABLE["records"].schema


def test_linked_tables_have_files_of_their_own(tmp_path):
    persons = pl.DataFrame({"household": [1, 1, 3], "age": ["7", "40", "41"]})
    files = "{input} {output} {input:persons.parquet} {output:persons.parquet}"
    command = f"""sh -c 'cp "$1" "$2"; cp "$3" "$4"' x {files}"""
    made = CommandProgram(command)({**TABLE, "persons": persons})
    assert set(made) == {"records", "persons"}
    assert made["persons"].equals(persons)


def test_each_run_has_a_folder_of_its_own_that_only_the_user_can_read(tmp_path, private):
    code = "print(oct(os.stat(os.path.dirname(os.path.dirname(read))).st_mode), read); sys.exit(1)"
    program = python(tmp_path, code)
    said = [refusal(program).lines[-1].split() for _ in range(2)]
    assert said[0][0] == said[1][0] == "0o40700"
    assert said[0][1] != said[1][1]
    assert said[0][1].startswith(str(private))


def test_another_number_of_rows_is_no_error(tmp_path):
    made = python(tmp_path, "lines = open(read).readlines(); open(write, 'w').writelines(lines[:2])")(TABLE)
    assert made["records"].height == 1


def test_a_header_without_rows_is_a_table_without_rows(tmp_path):
    made = python(tmp_path, "lines = open(read).readlines(); open(write, 'w').writelines(lines[:1])")(TABLE)
    assert made["records"].height == 0
    assert made["records"].schema == TABLE["records"].schema


def test_the_environment_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("STIRRED_TEST_WORD", "a word of the environment")
    refused = refusal(python(tmp_path, "sys.exit(os.environ['STIRRED_TEST_WORD'])"))
    assert refused.lines == ("a word of the environment",)


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_named():
    refused = refusal(CommandProgram("no-such-program-7731 {input} {output}"))
    assert refused.kind == "program-not-found"
    assert "'no-such-program-7731'" in refused.problem


def test_a_program_that_fails_is_shown_with_its_exit_code_and_its_last_lines(tmp_path):
    refused = refusal(python(tmp_path, "print('first'); print('the reason', file=sys.stderr); sys.exit(7)"))
    assert refused.kind == "program-failed"
    assert "exit code 7" in refused.problem
    assert "the reason" in refused.lines


def test_a_program_that_is_killed_is_told_from_one_that_fails(tmp_path):
    refused = refusal(python(tmp_path, "os.kill(os.getpid(), 9)"))
    assert refused.kind == "program-failed"
    assert "signal 9" in refused.problem
    assert "printed nothing" in refused.remedy


def test_what_a_program_prints_is_kept_within_bounds(tmp_path):
    refused = refusal(python(tmp_path, "print('x' * 5_000_000); print('last'); sys.exit(1)"))
    assert refused.lines[-1] == "last"
    assert sum(map(len, refused.lines)) < 1_000


def alive(number: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for by its parent does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_hangs_is_killed_with_everything_it_started(tmp_path):
    code = (
        f"child = subprocess.Popen(['sleep', '60']); open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    refused = refusal(python(tmp_path, code, seconds=1))
    assert refused.kind == "program-hangs"
    assert "within 1 s" in refused.problem
    assert not alive(int((tmp_path / "child").read_text(encoding="utf-8")))


def test_what_a_program_leaves_running_is_killed(tmp_path):
    code = (
        f"child = subprocess.Popen(['sleep', '60']); open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "open(write, 'w').write(open(read).read())"
    )
    assert python(tmp_path, code)(TABLE)["records"].height == 3
    assert not alive(int((tmp_path / "child").read_text(encoding="utf-8")))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_audit_leaves_no_folder_and_no_process(number, tmp_path, private):
    code = (
        "import signal, tempfile, polars as pl\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "from stirred.lab.audit.programs import CommandProgram\n"
        f"tempfile.tempdir = {str(private)!r}\n"
        f"ready = {str(tmp_path / 'ready')!r}\n"
        "command = f\"sh -c 'echo $$ > {ready}; sleep 60' x {{input}} {{output}}\"\n"
        "CommandProgram(command)({'records': pl.DataFrame({'a': [1]})})\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    ready = tmp_path / "ready"
    while not (ready.exists() and ready.read_text(encoding="utf-8").strip()):
        assert run.poll() is None
        time.sleep(0.01)
    assert list(private.iterdir())
    os.kill(run.pid, number)
    assert run.wait(30) != 0
    assert list(private.iterdir()) == []
    assert not alive(int(ready.read_text(encoding="utf-8")))


@pytest.mark.parametrize("code", ["pass", "open(write, 'w').close()", "os.mkdir(write)", "os.mkfifo(write)"])
def test_a_program_that_writes_nothing_is_named(code, tmp_path):
    refused = refusal(python(tmp_path, code))
    assert refused.kind == "program-wrote-nothing"
    assert "'records'" in refused.problem


@pytest.mark.parametrize(
    "code",
    [
        "open(write, 'wb').write(bytes(range(256)))",
        "open(write, 'w').write('size,county,income,owner,day\\n1,2\\n')",
        "open(write, 'w').write(open(read).read().replace('1.5', 'SECRET'))",
    ],
)
def test_what_is_no_table_is_named_and_not_quoted(code, tmp_path):
    refused = refusal(python(tmp_path, code))
    assert refused.kind == "program-wrote-no-table"
    assert "SECRET" not in str(refused)


def test_what_is_no_parquet_file_is_named():
    assert refusal(CommandProgram("cp {input} {output.parquet}")).kind == "program-wrote-no-table"


def test_other_columns_are_named(tmp_path):
    refused = refusal(python(tmp_path, "open(write, 'w').write(open(read).read().replace('county', 'country'))"))
    assert refused.kind == "program-other-columns"
    assert "'county' is missing; 'country' should not be there" in refused.problem


def test_columns_that_the_plan_leaves_out_must_not_be_written():
    dropped = Columns(left_out={"records": ["day"]})
    refused = refusal(CommandProgram("cp {input} {output}", columns=dropped))
    assert refused.kind == "program-other-columns"
    assert "'day' should not be there" in refused.problem


def test_a_table_that_is_no_input_has_the_numbers_that_are_stated():
    made = CommandProgram(
        "cp {input} {output}", names=("records", "measurements"), columns=Columns(numbers={"measurements": ["size"]})
    )(TABLE)["measurements"]
    assert made["size"].to_list() == [1.0, 2.0, 3.0]
    assert made["income"].to_list() == ["1.5", "2.0", "-3.25"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "it is empty"),
        ("cp 'a {input} {output}", "a quotation mark is not closed"),
        ("cp a {output}", "{input} is nowhere"),
        ("cp {input} a", "{output} is nowhere"),
        ("cp {input} {output} {input.xlsx}", "{input.xlsx} stands for nothing"),
    ],
)
def test_a_command_that_cannot_be_used_is_refused_before_it_is_run(command, words):
    with pytest.raises(errors.StirredError) as refused:
        CommandProgram(command)
    assert refused.value.kind == "program-command"
    assert words in refused.value.problem


def test_a_table_that_the_plan_does_not_have_cannot_be_asked_for():
    refused = refusal(CommandProgram("cp {input:persons} {output}"))
    assert refused.kind == "program-command"
    assert "no table 'persons'" in refused.problem


def test_one_table_cannot_be_asked_for_in_two_formats():
    assert "as CSV and as Parquet" in refusal(CommandProgram("cp {input} {input.parquet} {output}")).problem


def test_a_run_without_time_is_refused():
    with pytest.raises(errors.StirredError, match="above 0"):
        CommandProgram("cp {input} {output}", seconds=0)


# -- Python functions ------------------------------------------------------------------------------------------------

MODULE = """
import sys
import polars as pl
def same(tables): return tables
def alone(tables): return tables["records"]
def pandas(tables): return {"records": tables["records"].to_pandas()}
def fails(tables): raise ValueError("the reason")
def fails_silently(tables): raise KeyError
def leaves(tables): sys.exit(0)
def leaves_without_a_code(tables): sys.exit()
def leaves_with_a_text(tables): sys.exit("the reason")
def nothing(tables): return {}
def number(tables): return 7
def spoils(tables):
    tables["records"] = tables["records"].drop("size")
    return tables
class Inner:
    @staticmethod
    def same(tables): return tables
value = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"swapper_{os.getpid()}_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / f"{name}_broken.py").write_text("raise RuntimeError('at import')", encoding="utf-8")
    (tmp_path / f"{name}_leaving.py").write_text("import sys; sys.exit(0)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


@pytest.mark.parametrize("function", ["same", "alone", "pandas", "Inner.same"])
def test_a_python_function_is_a_program(function, module):
    made = callable_program(f"{module}:{function}")(TABLE)["records"]
    assert made.drop("day").equals(TABLE["records"].drop("day"))


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        ("fails", "program-failed", "raised ValueError"),
        ("leaves", "program-failed", "leaves ended the audit with sys.exit(0)."),
        ("leaves_without_a_code", "program-failed", "ended the audit with sys.exit(0)."),
        ("leaves_with_a_text", "program-failed", "ended the audit with sys.exit(1)."),
        ("nothing", "program-wrote-nothing", "'records'"),
        ("number", "program-wrote-no-table", "'records'"),
        ("spoils", "program-other-columns", "'size' is missing"),
    ],
)
def test_a_python_function_that_goes_wrong_is_named(function, kind, words, module):
    refused = refusal(callable_program(f"{module}:{function}", columns=Columns(tables=("records",))))
    assert refused.kind == kind
    assert words in refused.problem
    assert TABLE["records"].width == 5, "what a function does to its tables stays with it"


@pytest.mark.parametrize("function", ["fails", "leaves_with_a_text"])
def test_what_an_exception_says_is_shown_as_said_not_as_printed(function, module):
    refused = refusal(callable_program(f"{module}:{function}"))
    assert refused.remedy.endswith("It said:")
    assert list(refused.lines) == ["the reason"]


@pytest.mark.parametrize("function", ["fails_silently", "leaves", "leaves_without_a_code"])
def test_an_exception_without_words_announces_none(function, module):
    refused = refusal(callable_program(f"{module}:{function}"))
    assert refused.remedy.endswith("It said nothing about the reason.")
    assert not refused.lines


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_colon", "no colon"),
        (":f", "no colon"),
        ("no_such_module_7731:f", "no module 'no_such_module_7731'"),
        ("{module}:no_such", "no 'no_such'"),
        ("{module}:value", "a int, which cannot be called"),
        ("{module}_broken:f", "raised RuntimeError: at import"),
        ("{module}_leaving:f", "importing it ended the audit with sys.exit(0)."),
    ],
)
def test_a_name_that_is_no_function_is_refused(name, words, module):
    with pytest.raises(errors.StirredError) as refused:
        callable_program(name.format(module=module))
    assert refused.value.kind == "program-not-callable"
    assert words in refused.value.problem
