"""Every script of ``examples/`` runs in an empty folder, and what it prints is true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def run(name: str, folder: Path) -> str:
    """What a script prints when it is run in ``folder``."""
    words = [sys.executable, str(EXAMPLES / name)]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_swap_keeps_the_number_of_households_of_each_county(tmp_path):
    printed = run("swap_and_verify.py", tmp_path)
    assert "Reasons to stop: 0" in printed and "holds" in printed and "FAILS" not in printed
    counted: Counter[str] = Counter()
    for county, number in re.findall(r"([A-E]) +\S (?:owned|rented) +\S +(\d+)", printed):
        counted[county] += int(number)
    assert counted == Counter("ABCDE"[number * number % 5] for number in range(2_000))


def test_released_counts_of_topdown_add_up_to_the_true_number_of_persons(tmp_path):
    printed = run("topdown_with_estimates.py", tmp_path)
    assert "verified: True" in printed
    rows = [line.split() for line in printed.splitlines() if re.match(r" *\d{11} ", line)]
    assert len(rows) >= 4
    assert sum(int(row[2]) for row in rows) == sum(int(row[3]) for row in rows) == 12_000
    for row in rows:
        assert int(row[5]) <= float(row[4]) <= int(row[7])


def test_epsilon_of_one_half_implies_rho_of_one_eighth(tmp_path):
    printed = run("compare_and_explain.py", tmp_path)
    assert "epsilon=1/2 is the stronger: it implies rho=1/8" in printed  # rho = epsilon squared, halved
    assert "rho = 55.371" in printed and "the number of persons by state" in printed
    assert "late-start" in printed


def test_a_ledger_refuses_the_release_that_would_pass_its_limit(tmp_path):
    printed = run("ledger_with_limit.py", tmp_path)
    assert "spends rho = 5/6" in printed and "flavor: rho = 0.16" in printed
    assert "Nothing was released and nothing was spent" in printed and "FAILS" not in printed
    assert (tmp_path / "first").is_dir() and not (tmp_path / "second").exists()


def test_the_dependence_examples_of_the_slides_have_their_published_numbers(tmp_path):
    printed = run("responses_and_dependence.py", tmp_path)
    assert "share 0.25, standard error 0.25, at most 0.25" in printed and "0.4054651" in printed
    for pair in ("1.0, 0.0: 7.389056", "0.8, 0.3: 4.259299", "0.5, 0.5: 2.718282", "0.3, 0.8: 1.734806"):
        assert pair in printed
    for row in ("0.01     6.9453", "0.1      4.5085", "0.2      3.2439", "0.268941 2.7183", "0.5      1.7616"):
        assert row in printed
    assert "(1,); factor after three yes: 18.282, above e^2" in printed and "(0, 1, 2); bound 20.086" in printed


def test_bounds_of_composed_noise_lie_below_those_from_rho_alone(tmp_path):
    printed = run("noise_and_accounting.py", tmp_path)
    bounds = [(float(low), float(high)) for low, high in re.findall(r"lower=([\d.]+), upper=([\d.]+)", printed)]
    assert len(bounds) == 3 and all(low <= high < low + 1e-6 for low, high in bounds)
    alone = float(re.search(r"from rho = 8/27 alone: ([\d.]+)", printed).group(1))
    assert bounds[0][1] < alone


def test_every_practice_that_the_theorem_forbids_is_listed_with_its_loss(tmp_path):
    printed = run("what_the_theorem_forbids.py", tmp_path)
    assert "14 practices, 8 of them without any bound" in printed and printed.count("no bound holds") == 8
    for times in ("1.125", "1.146", "1.322", "1.331"):  # published with the theorem for rates by rule
        assert f"{times} times the bound" in printed
    assert "stays within its bound in every example: True" in printed


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_short_opens_with_two_sentences_and_is_tried_here(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert len(re.findall(r"[.;](?= |\n|$)", ast.get_docstring(ast.parse(text)) or "")) in (2, 3)
    assert f'run("{name}"' in Path(__file__).read_text(encoding="utf-8")
