"""Generated censuses: ``stirred population`` writes one with its plan, ``stirred demo topdown`` releases a county.

The demonstration can print the truth beside the release because everybody in the county is invented.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from stirred import errors
from stirred._progress import OnTerminal
from stirred.releases.folder.atomic import appearing, check_target
from stirred.releases.mechanism import Release
from stirred.releases.verdicts import State
from stirred.spec.exact import display
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.drawing import TopDownRelease
from stirred.topdown.estimating.precision import expected_errors
from stirred.topdown.fitting.one_level import start_compiling
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.presets import preset
from stirred.topdown.plan.sections import TOTAL
from stirred.topdown.verifying import verify

FILES = {
    "geography": "blocks.parquet",
    "persons": "persons.parquet",
    "units": "units.parquet",
    "facilities": "facilities.parquet",
}


def write_population(
    out: str | Path,
    persons: int = 100_000,
    seed: int = 1,
    states: int | None = None,
    preset_name: str = "pl94-2020",
) -> list[str]:
    """Write the tables and ``plan.toml`` into a new folder; returns the lines to print."""
    out = Path(out)
    country = Population(persons, seed, states)
    named = f"a generated census of {persons:,} persons, seed {seed}"
    plan = preset(preset_name, DOMAINS, nation=(states or 1) > 1, dataset=named, chosen_from="public")
    with OnTerminal() as progress, appearing(out) as folder:
        progress.stage("generating persons")
        country.write(folder)
        (folder / "plan.toml").write_text(plan.reading(FILES).to_toml(), encoding="utf-8")
    return [
        f"Wrote {out}: {', '.join(FILES.values())} and plan.toml ({preset_name}, rho {float(plan.rho):.5f}).",
        f"Next: stirred check {out / 'plan.toml'}",
    ]


PERSONS = 80_000
SHOWN = 3
_HOLDS = "Verified: invariants, constraints and the budget were recomputed from the folder, and hold."


def prepare(folder: Path) -> TopDownPlan:
    """Generate the county, and write it with its plan into a new folder."""
    check_target(folder.absolute())
    start_compiling()
    try:
        folder.mkdir()
        files = Population(PERSONS, seed=1, states=1).write(folder)
        named = {"geography": "blocks.parquet", **{name: path.name for name, path in files.items() if name != "blocks"}}
        publish = [{"table": "persons", "level": "tract", "by": ["votingage"]}]
        plan = preset("pl94-2020", DOMAINS, dataset="a generated county", chosen_from="public", publish=publish)
        (folder / "plan.toml").write_text(plan.reading(named).to_toml(), encoding="utf-8")
    except OSError as problem:
        raise errors.cannot_write(folder, problem.strerror or "an input/output error") from None
    print(
        f"A generated county of {PERSONS:,} persons, with the plan of the 2020 redistricting data: 2,016 kinds of\n"
        "person, 11 queries at each level; the state's total, and the housing units and group quarters of each block,\n"
        "are kept exactly. The first run on a machine also compiles, for about half a minute.\n"
    )
    return TopDownPlan.from_toml(folder / "plan.toml")


def show(folder: Path, made: Release, began: float) -> None:
    """Verify the release, and print its totals by level beside the true ones."""
    assert isinstance(made, TopDownRelease)
    print(_table(made.plan, made, count_tables(made.plan)))
    print()
    failing = [verdict for verdict in verify(folder / "release") if verdict.state is State.CONTRADICTED]
    print("\n".join(map(str, failing)) or _HOLDS)
    print(
        f"rho = {display(made.specification.budget.number)} per person, between censuses that agree on what is kept "
        "exactly. One state does not spend\nthe nation's share of the 2020 budget.\n"
    )
    print(f"{time.monotonic() - began:.1f} s in all. {folder} holds the tables, plan.toml and release/. Next, try:")
    print(f"  stirred check {folder}/plan.toml                                      expected errors, concerns, cost")
    print(f"  stirred explain {folder}/release                                      what the guarantee means")
    print(f"  stirred estimate {folder}/release --level tract --by votingage        unbiased, with intervals")


def _table(plan: TopDownPlan, made: TopDownRelease, truth: Counted) -> str:
    """Totals of the first units of each level, and the mean error of all."""
    expected = {(one.table, one.level, one.query): one for one in expected_errors(plan, truth.spine)}
    lines = [
        f"{'level':12}{'unit':>17}{'true':>9}{'released':>10}{'error':>7}{'expected s.e.':>15}"
        f"{'mean |error| of all':>21}"
    ]
    for number, level in enumerate(plan.spine.all_levels):
        true, got = truth.histograms("persons", number).totals(), made.counts("persons", level)[:, 0]
        names = made.draw.spine.names[number].to_pylist()
        error = expected["persons", level, TOTAL].combined
        said = "-" if error is None else "exact" if error == 0 else f"{error:.2f}"
        for place, unit in enumerate(np.flatnonzero(true)[:SHOWN].tolist()):
            mean = f"{np.abs(got - true).mean():>12.2f} ({len(true):,})" if place == 0 else ""
            lines.append(
                f"{level if place == 0 else '':12}{names[unit]:>17}{true[unit]:>9,}{got[unit]:>10,}"
                f"{got[unit] - true[unit]:>7,}{said if place == 0 else '':>15}{mean:>21}".rstrip()
            )
    lines.append(
        "\nThe expected standard error is that of the best unbiased estimate of a total from all measurements; that\n"
        "counts are not negative helps the fit further where they are small. The last column is over all units of\n"
        "the level, their number in brackets."
    )
    return "\n".join(lines)
