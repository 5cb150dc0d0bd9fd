"""The studies in ``examples/``: they run as they are, and what the documentation says about them is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from stirred.lab.study import Study, read_study, run_study

EXAMPLES = Path(__file__).parents[3] / "examples"
SHARE, BLOCK_ADULT, BLOCK_RACE = "persons by tract, race", "persons by block, adult", "persons by block, race"
TENURE = "dwellings by county, tenure"


def run(name: str, draws: int | None = None) -> Study:
    return run_study(read_study(EXAMPLES / name / "study.toml"), draws=draws)


@pytest.mark.parametrize("name", ["study_massachusetts", "study_country"])
def test_an_example_runs_from_its_folder(name):
    found = run(name, draws=2)
    assert len(found.contenders) == 5 and found.generated
    assert [one.known.losses[0].kind for one in found.contenders] == ["theorem"] * 3 + ["no bound"] * 2
    assert str(found).startswith("Everybody in these data is invented")


@pytest.mark.slow
def test_the_numbers_told_about_massachusetts():
    # Fixed seeds: the numbers are the same in every run. They are quoted in the documentation.
    found = run("study_massachusetts")
    shown = [(one.known.losses[0].shown, str(one.whole(TENURE).mean_absolute)) for one in found.contenders]
    assert shown == [
        ("epsilon 13.17", "2.186 ± 0.1"),
        ("epsilon 11.52", "7.893 ± 0.3"),
        ("epsilon 8.58", "62.84 ± 1"),
        ("epsilon infinite", "7.993 ± 0.4"),
        ("epsilon infinite", "5.086 ± 0.3"),
    ]
    relative = [round(100 * one.whole(TENURE).relative.value, 1) for one in found.contenders]
    assert relative == [0.5, 2.1, 14.0, 4.3, 3.5]
    in_place = [round(100 * one.uniques_in_place.value, 1) for one in found.contenders]
    assert found.unique == 48 and in_place == [99.6, 95.2, 53.9, 2.1, 0.0]
    half = found["PSA 50%"].whole(TENURE)
    assert str(half.systematic) == "109.4 ± 2" and str(half.root_mean_square) == "110.7 ± 2"
    sizes = [one.whole("dwellings by county, household_size").mean_absolute.value for one in found.contenders]
    assert sizes[:4] == [0, 0, 0, 0] and round(sizes[4], 3) == 0.053


@pytest.mark.slow
def test_the_numbers_told_about_the_country():
    found = run("study_country")
    changed = {one.name: round(100 * one.changed.value / found.records, 1) for one in found.contenders if one.changed}
    assert changed == {"PSA 5%": 5.0, "PSA 50%": 49.9, "2010-like, 5%": 5.0, "sdcMicro-like, 5%": 14.7}
    errors = {
        one.name: [str(one.whole(table).mean_absolute) for table in (SHARE, BLOCK_ADULT, BLOCK_RACE)]
        for one in found.contenders
    }
    fitted = [found["TopDown, rho 1"].whole(table).mean_absolute.value for table in (SHARE, BLOCK_ADULT, BLOCK_RACE)]
    assert fitted == pytest.approx([2.635, 1.881, 0.8161], rel=0.02)  # a fit's last digits are the machine's
    assert {name: told for name, told in errors.items() if not name.startswith("TopDown")} == {
        "PSA 5%": ["6.885 ± 0.3", "0", "0.1495 ± 0.003"],
        "PSA 50%": ["53.87 ± 0.8", "0", "1.081 ± 0.01"],
        "2010-like, 5%": ["2.38 ± 0.2", "0", "0.2699 ± 0.007"],
        "sdcMicro-like, 5%": ["25.32 ± 0.7", "0", "0.8535 ± 0.006"],
    }
    powers = [round(100 * one.known.power, 1) for one in found.contenders]
    assert powers == [54.3, 100.0, 80.0, 100.0, 100.0]
    swapped, fitted = (
        [part.errors.mean for part in found[name].tables[SHARE] if part.name.startswith("true count")]
        for name in ("PSA 5%", "TopDown, rho 1")
    )
    assert list(map(str, swapped)) == ["0.15 ± 0.1", "3.175 ± 0.4", "2.456 ± 0.2", "-4.023 ± 0.3", "0"]
    assert [one.value for one in fitted] == pytest.approx([0.9, 0.15, -0.225, 0.09, 0.0], abs=0.05)
    fitted = [part.errors.mean.value for part in found["TopDown, rho 1"].tables[BLOCK_RACE][1:3]]
    assert fitted == pytest.approx([0.22, -0.75], abs=0.03)
    assert {one.name: round(100 * one.known.leakage.unique, 1) for one in found.contenders} == {
        "TopDown, rho 1": 0.0, "PSA 5%": 16.8, "PSA 50%": 16.8, "2010-like, 5%": 16.8, "sdcMicro-like, 5%": 7.2,
    }  # fmt: skip
