"""One real survey in three settings: what each protects, and what it costs, in one table and one picture.

The file is the NIST Diverse Communities excerpt of the American Community Survey 2019 for Massachusetts
(nist_ma2019.csv, https://github.com/usnistgov/SDNist). Run: python compare.py nist_ma2019.csv NEW_FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import polars as pl

import stirred
from stirred.reports.figures import save
from stirred.semantics.pictures import GroupedInterval, GroupedIntervals

HERE = Path(__file__).parent
SETTINGS = {
    "A: the weighted file's record": "weighted_file.toml",
    "B: one sampled person; weights cut at 300": "cut_weights.toml",
    "C: one sampled person; weights made equal": "equal_weights.toml",
}
POSSIBLE = (0, 200_000)  # the bounds of income in the plans
SHOWN = (40_000, 80_000)
TIMES = 1.96  # standard errors on either side, for the part that noise alone would give


def main(data: str, out: str) -> None:
    """Release the file in each setting, print mean incomes by area, and draw them."""
    folder = Path(out)
    folder.mkdir()
    found = {}
    for name, plan in SETTINGS.items():
        place = folder / plan.removesuffix(".toml")
        release = stirred.release(HERE / plan, data, out=place)
        assert all(verdict.holds for verdict in stirred.verify(place))
        print(f"\n{name}\n  protected: {release.specification.domain.record}")
        means = stirred.estimate(place, ["PUMA", "age"], of="income").to_frame()
        found[name] = means.filter(pl.col("age") == "15 and over")
        counts = stirred.estimate(place, ["PUMA"]).to_frame()
        print(f"{'':12}{'persons':>14}{'sampling':>12}{'noise':>14}{'mean income':>16}{'sampling':>12}{'noise':>14}")
        for row, count in zip(found[name].rows(named=True), counts.rows(named=True), strict=True):
            shown = [one[part] for one in (count, row) for part in ("estimate", "sampling_error", "noise_error")]
            cells = ["none" if number is None else f"{number:,.0f}" for number in shown]
            widths = (14, 12, 14, 16, 12, 14)
            print(
                f"  {row['PUMA']:10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            )
    written = save(picture(found), folder / "settings.png")
    print(f"\nwrote {written[0]}")


def picture(found: dict[str, pl.DataFrame]) -> GroupedIntervals:
    """Mean income by area, one interval for each setting; thick the part that noise alone would give."""
    shown = [interval(name, row) for name, table in found.items() for row in table.rows(named=True)]
    return GroupedIntervals(
        "settings",
        "Mean income by area, in three settings",
        "Persons of 15 and over: 95% intervals (thin), and what noise alone would give (thick)",
        "mean income in dollars",
        tuple(shown),
        *SHOWN,
        "American Community Survey 2019, NIST excerpt of Massachusetts, 7,634 records; rho = 0.5 in each setting. "
        "Rules that are published beforehand cut weights at 300 and incomes at 200,000 dollars. In setting B one "
        "record may change all weights, and the noise hides everything: its intervals go beyond the picture. In "
        "setting C they do not show the bias of equal weights. Standard errors of sampling are measured, as if "
        "persons had been drawn one by one.",
    )


def interval(setting: str, row: dict[str, Any]) -> GroupedInterval:
    """One interval; where noise hides even that there is somebody in an area, it is everything that is possible."""
    if row["estimate"] is None:
        return GroupedInterval(row["PUMA"], setting, *(POSSIBLE[0], None, POSSIBLE[1]), *POSSIBLE)
    noise = TIMES * row["noise_error"]
    return GroupedInterval(
        *(row["PUMA"], setting, row["lower"], row["estimate"], row["upper"]),
        *(row["estimate"] - noise, row["estimate"] + noise),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
