"""Writes a generated census with a TopDown plan for it."""

from __future__ import annotations

from pathlib import Path

from stirred.releases.folder.atomic import appearing
from stirred.releases.progress import OnTerminal
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown.presets import preset

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
