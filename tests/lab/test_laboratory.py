"""The product does without the laboratory, which adds its commands itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from stirred.cli import app


@pytest.mark.parametrize(
    "words", [("--version",), ("--version", "--json"), ("--help",), ("explain", "rho=1")], ids=" ".join
)
def test_commands_of_the_product_load_nothing_of_the_laboratory(words):
    code = (
        "import sys\nfrom stirred.cli.app import main\ntry:\n    main()\nexcept SystemExit as ending:\n"
        "    assert not ending.code\nassert not [name for name in sys.modules if name.startswith('stirred.lab')]"
    )
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)


def test_the_list_of_commands_is_the_same_whether_the_laboratory_is_loaded_or_not():
    names = [set(typer.main.get_command(app.build(words)).commands) for words in (None, [], ["audit", "--help"])]
    assert names[0] == names[1] == names[2] >= app.LABORATORY


def test_the_laboratory_is_in_the_list_of_commands_and_has_help_of_its_own(command):
    listed = command("--help").out
    for name in app.LABORATORY:
        assert f"\n  {name} " in listed
        assert f"stirred {name} " in command(name, "--help").out
