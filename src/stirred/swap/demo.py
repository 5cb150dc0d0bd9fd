"""The demonstration of section 3.2.4, Massachusetts 1940: Tables 3.1 and 3.2 again.

The generated file has the published county-by-tenure counts and the published number of two-person households, the
largest stratum. Household sizes within cells are ours.
"""

from __future__ import annotations

from pathlib import Path

from stirred import errors
from stirred.releases.folder.atomic import check_target
from stirred.releases.mechanism import Release
from stirred.releases.verdicts import State
from stirred.spec.exact import display
from stirred.swap.estimating.questions import estimate
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import tabulate, verify
from stirred.tables.synthetic import PUBLISHED_MAPE, TABLE_3_1, massachusetts_1940

PLAN = """\
stirred = 1
mechanism = "swap"

unit = "dwelling"
rate = 0.5
chosen_from = "public"

match = ["state", "household_size"]
swap = ["county"]
hold = ["tenure"]
id = "serial"
tables = [["county", "tenure"]]

[input]
path = "dwellings.parquet"
"""


def prepare(folder: Path) -> SwapPlan:
    """Generate the file, and write it with its plan into a new folder."""
    check_target(folder.absolute())
    try:
        folder.mkdir()
        massachusetts_1940().write_parquet(folder / "dwellings.parquet")
        (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    except OSError as problem:
        raise errors.cannot_write(folder, problem.strerror or "an input/output error") from None
    print(
        "Massachusetts 1940: 1,144,424 dwellings, generated here. County-by-tenure counts and the 264,331 two-person\n"
        "households are the published ones; sizes within cells are ours. Match: state, household size. Swap: county.\n"
        "Hold: tenure. Swap rate 50%.\n"
    )
    return SwapPlan.from_toml(folder / "plan.toml")


def show(folder: Path, made: Release, began: float) -> None:
    """Verify the release, and print its tables."""
    print(_table(folder / "release"))
    print(f"\n{_corrected(folder / 'release')}\n")
    for verdict in verify(folder / "release"):
        if verdict.state in (State.HOLDS, State.CONTRADICTED):
            print(verdict)
    print(f"\n{_guarantee(made)}\n")
    print(f"{folder} holds the generated file, plan.toml, and release/ with its report.html. Next, try:")
    print(f"  stirred check {folder}/plan.toml --rates 0.01,0.05,0.1,0.5     Table 3.2, from the data")
    print(f"  stirred tabulate {folder}/release --by county,tenure")
    print(f"  stirred estimate {folder}/release --by county,tenure")
    print("  stirred init YOUR_FILE.csv                                     draft a plan for your own file")


def _table(folder: Path) -> str:
    """Table 3.1 with this run beside the published one."""
    found = tabulate(folder, ["county", "tenure"]).to_pydict()
    cells = dict(zip(zip(found["county"], found["tenure"], strict=True), found["count"], strict=True))
    lines = [
        f"{'':12}{'true':>20}{'published run':>20}{'this run':>20}{'':>11}",
        f"{'county':12}" + f"{'owned':>10}{'rented':>10}" * 3 + f"{'total':>11}",
    ]
    errors_here, totals = [], [0] * 6
    for row in TABLE_3_1:
        mine = cells.get((row.county, "owned"), 0), cells.get((row.county, "rented"), 0)
        errors_here += [abs(mine[0] - row.owned) / row.owned, abs(mine[1] - row.rented) / row.rented]
        counts = (row.owned, row.rented, row.owned_swapped, row.rented_swapped, *mine)
        lines.append(f"{row.county:12}" + "".join(f"{number:>10,}" for number in counts) + f"{sum(mine):>11,}")
        totals = [total + number for total, number in zip(totals, counts, strict=True)]
    lines.append(f"{'total':12}" + "".join(f"{number:>10,}" for number in totals) + f"{sum(totals[-2:]):>11,}")
    mape = sum(errors_here) / len(errors_here)
    lines.append(
        f"\nMean absolute percentage error: published run {PUBLISHED_MAPE:.3f}, this run {mape:.3f}. "
        "It can be printed\n"
        "because the true table is published; for a confidential file this comparison is confidential."
    )
    return "\n".join(lines)


def _corrected(folder: Path) -> str:
    """Rented dwellings by county: as released, corrected with an interval, and the published truth."""
    truth = {row.county: row.rented for row in TABLE_3_1}
    found = [
        row for row in estimate(folder, ["county", "tenure"]).to_frame().rows(named=True) if row["tenure"] == "rented"
    ]
    lines = [
        "What an analyst can do with the release alone: rented dwellings, corrected (stirred estimate)",
        f"{'county':12}{'as released':>12}{'corrected':>11}{'95% interval':>22}{'truth':>10}{'rented share':>15}"
        f"{'corrected':>11}{'truth':>8}",
    ]
    totals = {row.county: row.owned + row.rented for row in TABLE_3_1}
    missed = 0
    for row in found:
        county = row["county"]
        miss = not row["lower"] <= truth[county] <= row["upper"]
        missed += miss
        shares = [100 * number / totals[county] for number in (row["naive"], row["estimate"], truth[county])]
        interval = f"{row['lower']:,.0f} to {row['upper']:,.0f}"
        lines.append(
            f"{county:12}{row['naive']:>12,.0f}{row['estimate']:>11,.0f}{interval:>22}{truth[county]:>10,}"
            f"{shares[0]:>14.1f}%{shares[1]:>10.1f}%{shares[2]:>7.1f}%" + ("  missed" if miss else "")
        )
    lines.append(
        f"{len(found) - missed} of {len(found)} intervals contain the truth; at 95% one in twenty misses on average. "
        "Owned dwellings are the\nrest of each county, whose totals are kept, so their intervals miss with these."
    )
    return "\n".join(lines)


def _guarantee(made: Release) -> str:
    value = float(made.specification.budget.number)
    return (
        f"epsilon = {value:.2f} (Table 3.2 prints 12.48; releases state it rounded up, "
        f"{display(value)}). It protects tenure\n"
        "against county within a household size, between files that share all counts of size by county and of size by\n"
        "tenure; the nearest two such files differ in two dwellings, at a log likelihood ratio of up to "
        f"{display(2 * value)}.\nIt says nothing about those counts themselves, which are published exactly."
    )
