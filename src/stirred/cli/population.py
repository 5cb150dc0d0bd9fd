"""``stirred population``: a generated census to try things on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Preset(StrEnum):
    """Plans that fit the generated tables."""

    pl94_2020 = "pl94-2020"
    pl94_units = "pl94-units"
    teaching = "teaching"


def population(
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.")],
    persons: Annotated[int, typer.Option(help="How many persons.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Another number gives another country.")] = 1,
    states: Annotated[int | None, typer.Option(help="How many states; by default one for each six million.")] = None,
    preset: Annotated[Preset, typer.Option(help="The TopDown plan to write beside the tables.")] = Preset.pl94_2020,
) -> None:
    """Make a census of any size: blocks, persons, housing units, group quarters, and a TopDown plan for them. Everybody
    in it is invented; the same numbers give the same rows."""
    from stirred.releases.folder import appearing
    from stirred.releases.progress import OnTerminal
    from stirred.tables.synthetic.population import DOMAINS, Population
    from stirred.topdown.presets import preset as known

    country = Population(persons, seed, states)
    named = f"a generated census of {persons:,} persons, seed {seed}"
    plan = known(preset.value, DOMAINS, nation=(states or 1) > 1, dataset=named, chosen_from="public")
    with OnTerminal() as progress, appearing(out) as folder:
        progress.stage("inventing people")
        country.write(folder)
        (folder / "plan.toml").write_text(plan.reading(FILES).to_toml(), encoding="utf-8")
    print(f"Wrote {out}: {', '.join(FILES.values())} and plan.toml ({preset.value}, rho {float(plan.rho):.5f}).")
    print(f"Next: stirred check {out / 'plan.toml'}")


FILES = {
    "geography": "blocks.parquet",
    "persons": "persons.parquet",
    "units": "units.parquet",
    "facilities": "facilities.parquet",
}
