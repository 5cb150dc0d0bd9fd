"""``--figures`` and ``--paper`` of every command: each picture names its guarantee, and nothing empty is drawn."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import stirred
from stirred.cli import app, deployments, estimating, guarantees, options, planning
from stirred.semantics.pictures import shapes
from stirred.semantics.pictures.readable import NotDrawn

SOURCE = Path(stirred.__file__).parent
CLASSES = {
    one.__name__: list(inspect.signature(one).parameters)
    for one in (
        shapes.Picture,
        shapes.Bars,
        shapes.Intervals,
        shapes.GroupedIntervals,
        shapes.Panels,
    )
}

RUNS = [  # a folder, what is typed, and what the guarantee of its pictures says
    ("swap", "explain release", r"^Guarantee release: epsilon = [\d.]+ per household that differs, pure .+ fixed$"),
    ("swap", "explain rho=1/2", r"^Guarantee: rho = 0.5 per person replaced, zero-.+; no table of counts held fixed$"),
    ("swap", "explain topdown-2020-pl", r"^Guarantee topdown-2020-pl: rho = 2.63 per person that differs, .+ fixed$"),
    ("topdown", "explain release", r"^Guarantee.*: rho = [\d.]+ per person that differs, zero-concentrated"),
    ("swap", "compare rho=1/8 epsilon=1", r"^Guarantees: rho=1/8 \(rho = 0.125 per person replaced\); epsilon=1 \("),
    ("swap", "limits --epsilon 1 --records 10", r"^Guarantee: epsilon = 1 per record replaced, pure .+; 10 records$"),
    ("swap", "deployments", r"^Guarantees: as each deployment states its own; standard, unit and period"),
    ("swap", "estimate release --by county", r"^Guarantee release: epsilon = [\d.]+ per household that differs"),
    ("topdown", "estimate release --level county", r"^Guarantee.*: rho = [\d.]+ per person that differs"),
    ("survey", "estimate release", r"^Guarantee.*: (rho|epsilon) = [\d.]+ per \w+ (replaced|that differs)"),
    ("swap", "check plan.toml --rates 0.01,0.1 --by county", r"^Guarantees: epsilon from [\d.]+ to .+ per household"),
    ("swap", "study study.toml", r"^Guarantees: .+ \(epsilon = [\d.]+ per household that differs\)"),
    ("swap", "reproduce thesis/figure-6.1 thesis/figure-3.2", r"^Guarantees: epsilon .*per record (replaced|that)"),
    ("survey", "advise made/survey.toml --of income", r"^Guarantee: (rho|epsilon) = [\d./]+ per unit replaced"),
]  # fmt: skip


@pytest.fixture
def drawn(monkeypatch) -> list[shapes.AnyPicture]:
    """The pictures that a command would save."""
    found: list[shapes.AnyPicture] = []

    def keep(given, folder, *, paper=False):
        found.extend(one for one in given if not isinstance(one, NotDrawn))

    for module in (options, planning, estimating, guarantees, deployments):
        monkeypatch.setattr(module, "save_pictures", keep, raising=False)
    return found


def commands(group, before: str = "") -> Iterator[tuple[str, typer.models.CommandInfo]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, f"{before}{name} ")
        else:
            yield f"{before}{name}", one


DRAWING = [name for name, one in commands(typer.main.get_command(app.build()))
           if any("--figures" in parameter.opts for parameter in one.params)]  # fmt: skip


# -- guarantees ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "typed", "says"), RUNS, ids=[f"{place}: {typed}" for place, typed, _ in RUNS])
def test_every_picture_of_a_command_names_its_guarantee(place, typed, says, files, command, drawn):
    files(place)
    if typed.startswith("advise"):  # of a survey whose weights differ
        assert command("generate-survey", "made", "--persons", "4000").code == 0
    ended = command(*shlex.split(typed), "--figures", "pictures")
    assert ended.code == 0, ended.err
    assert drawn
    for picture in drawn:
        assert re.search(says, picture.guarantee), (picture.name, picture.guarantee)


def test_every_command_that_draws_is_run_here_and_can_draw_for_papers():
    assert set(DRAWING) == {typed.split()[0] for _, typed, _ in RUNS}
    for name, one in commands(typer.main.get_command(app.build())):
        if name in DRAWING:
            assert any("--paper" in parameter.opts for parameter in one.params), name


def made_without_guarantee(text: str) -> list[int]:
    """The lines on which a picture is made and no guarantee is given."""
    found: list[int] = []
    if not any(name in text for name in CLASSES):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and (name := getattr(node.func, "id", getattr(node.func, "attr", ""))) in CLASSES:
            positional = CLASSES[name][: len(node.args)]
            if "guarantee" not in {*positional, *(keyword.arg for keyword in node.keywords)}:
                found.append(node.lineno)
    return found


def test_every_picture_that_the_code_makes_is_given_a_guarantee():
    """Builders of ``semantics.pictures`` leave it to their callers, which the runs above look at."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.parent != SOURCE / "semantics" / "pictures":
            assert made_without_guarantee(path.read_text(encoding="utf-8")) == [], path
    assert made_without_guarantee("a = Bars('a', 'b', '', 'x', ())\npictures.Picture(lines=(), guarantee='g')") == [1]


@pytest.mark.slow
def test_every_figure_of_the_documents_names_its_guarantee():
    from stirred.lab.reproduce.catalogue import items
    from stirred.lab.reproduce.verdicts import reproduce

    figures = [one.id for one in items().values() if one.draws]
    found = reproduce(figures).pictures
    assert len(found) >= len(figures) > 20
    for picture in found:
        assert picture.guarantee.startswith("Guarantee") and " per " in picture.guarantee, picture.name


def test_the_guarantee_is_drawn_below_the_subtitle(tmp_path):
    from stirred.reports.figures import draw, save

    picture = stirred.explain("rho=1/2").pictures()[0]
    title = draw(picture).to_dict()["vconcat"][0]["title"]
    assert " ".join(title["subtitle"]) == f"{picture.subtitle} {picture.guarantee}"
    assert picture.guarantee in draw(picture).to_dict()["description"]
    (path,) = save(picture, tmp_path, ["svg"])
    assert "rho = 0.5 per person replaced" in path.read_text(encoding="utf-8")


# -- nothing to draw -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    ["explain epsilon=inf", "compare epsilon=inf epsilon=inf,unit=household", "limits --epsilon inf --records 3"],
)
def test_a_sentence_stands_in_place_of_pictures_that_would_be_empty(typed, command, tmp_path):
    ended = command(*typed.split(), "--figures", tmp_path / "pictures")
    assert ended.code == 0
    assert "No picture" in ended.err and "nothing to draw" in ended.err
    assert not (tmp_path / "pictures").exists()


def test_pictures_and_sentences_come_together(command, tmp_path):
    ended = command("explain", "rho=1000", "--figures", tmp_path / "pictures")
    assert "No picture of tests" in ended.err and "No picture of beliefs" in ended.err
    assert {path.stem for path in (tmp_path / "pictures").iterdir()} == {"epsilon-and-delta"}


# -- papers --------------------------------------------------------------------------------------------------


def test_figures_for_papers_are_written_with_captions(command, tmp_path):
    ended = command("limits", "--epsilon", "1", "--records", "10", "--figures", tmp_path / "p", "--paper")
    assert ended.code == 0
    widths = [f"{width}.{ending}" for width in ("one-column", "two-columns") for ending in ("pdf", "svg")]
    names = {f"limits-{what}-{one}" for what in ("tests", "beliefs") for one in (*widths, "caption.txt")}
    assert {path.name for path in (tmp_path / "p").iterdir()} == names
    said = " ".join((tmp_path / "p" / "limits-tests-caption.txt").read_text(encoding="utf-8").split())
    assert "Guarantee: epsilon = 1 per record replaced, pure differential privacy; 10 records." in said


@pytest.mark.parametrize("typed", ["explain rho=1", "advise survey.toml", "limits --epsilon 1 --records 10"])
def test_paper_needs_figures(typed, files, command):
    files("survey")
    ended = command(*typed.split(), "--paper")
    assert ended.code == 2 and "The option --paper has no effect without --figures FOLDER." in ended.said
