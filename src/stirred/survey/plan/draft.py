"""Drafts a survey plan from the names of a file's columns; no cell of the file is read.

Weights, replicate weights, strata and primary sampling units are recognised by name. Bounds, lists of values and the
budget are public knowledge that no file can tell: they are left as blanks, with which the plan is refused until
somebody fills them in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.releases.plans import Plan
from stirred.survey.plan.sections import TO_FILL_IN
from stirred.tables import open_input
from stirred.tables.reading.first_look import called_id, dataset_called, form_of, identifying, toml, written_path

BLANK = f'"{TO_FILL_IN}"'
"""What stands where somebody must state a public fact."""

_REPLICATE = r"(.*?(?:rep|brr|jk|boot|bsw|wgt|weight|wt|pwgtp|wgtp).*?)_?(\d{1,4})"
_WEIGHT = (
    r"^w$|^(p|h)?w(gt|eight|t)(p|s)?$|(^|_)(final|design|base|sampling|analysis|person|household|grossing)?_?"
    r"(weights?|wgts?|wts?)(_|$)|^pwgtp$|^wgtp$|^perwt$|^hhwt$|weight$|wgt$|^fac_?exp"
)
_FINAL = r"final|calib|adj|raked|pwgtp|wgtp|perwt|hhwt"
_STRATA = r"(^|_)(strat(a|um)?|sdmvstra|vstrat|str)(_|$|\d)|strat(a|um)$|^strat"
_CLUSTER = r"(^|_)(psu|cluster|clust|sdmvpsu|vpsu|segment|ea|primary_unit)(_|$|\d)|psu$|cluster$"
_ROW = r"^(person|respondent|case|row)$"
_NUMERIC = (
    r"income|wage|salary|earn|expend|spend|amount|hours|days|minutes|number_of|^n_|age$|^agep$|pincp|hincp|poverty|"
    r"rent$|value|price|size|score|height|weight_kg|bmi|turnover|employees|area_m"
)
_FEWEST = 3
"""Columns that a prefix and numbers must name to be taken for replicate weights."""


@dataclass(frozen=True)
class Guess:
    """What the columns of a file are taken for."""

    weight: str | None
    final: bool
    other_weights: tuple[str, ...]
    replicates: tuple[str, ...]
    strata: str | None
    clusters: str | None
    left_out: tuple[str, ...]
    variables: tuple[str, ...]
    attributes: tuple[str, ...]


def draft_plan(path: Path, folder: Path = Path(), **form_options: Any) -> str:
    """The draft as TOML; paths in it are relative to ``folder``. ``form_options`` are those of
    :func:`stirred.tables.reading.first_look.form_of`, where the file does not tell its form."""
    form = form_of(path, **form_options)
    found = guess(list(open_input("survey", path, form.options()).kinds))
    parts = [
        _head(path),
        ["[input]", f"path = {toml(written_path(path, folder))}", *form.lines()],
        _weights(found),
        _sample(),
        _design(found),
        _attributes(found),
        _variables(found),
        _queries(found),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def guess(columns: Sequence[str]) -> Guess:
    """What the names of columns look like.

    >>> found = guess(["PUMA", "SEX", "PINCP", "PWGTP", "PWGTP1", "PWGTP2", "PWGTP3"])
    >>> found.weight, found.replicates, found.variables, found.attributes
    ('PWGTP', ('PWGTP1', 'PWGTP2', 'PWGTP3'), ('PINCP',), ('PUMA', 'SEX'))
    """
    replicates = _replicates(columns)
    rest = [name for name in columns if name not in replicates]
    weights = [name for name in rest if re.search(_WEIGHT, name.lower())]
    # A design weight can be treated as fixed; adjusted ones cannot, and are the second choice.
    weight = next((name for name in weights if not re.search(_FINAL, name.lower())), next(iter(weights), None))
    rest = [name for name in rest if name not in weights]
    strata = next((name for name in rest if re.search(_STRATA, name.lower())), None)
    clusters = next((name for name in rest if name != strata and re.search(_CLUSTER, name.lower())), None)
    rest = [name for name in rest if name not in (strata, clusters)]
    left_out = [name for name in rest if called_id(name) or identifying(name) or re.search(_ROW, name.lower())]
    rest = [name for name in rest if name not in left_out]
    variables = [name for name in rest if re.search(_NUMERIC, name.lower())]
    return Guess(
        weight,
        weight is not None and re.search(_FINAL, weight.lower()) is not None,
        tuple(name for name in weights if name != weight),
        replicates,
        strata,
        clusters,
        tuple(left_out),
        tuple(variables),
        tuple(name for name in rest if name not in variables),
    )


def _replicates(columns: Sequence[str]) -> tuple[str, ...]:
    """Columns of one prefix with numbers from 0 or 1 on, the largest such group."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        if matched := re.fullmatch(_REPLICATE, name.lower()):
            groups.setdefault(matched[1], []).append((int(matched[2]), name))
    runs = [sorted(group) for group in groups.values() if len(group) >= _FEWEST]
    runs = [run for run in runs if [number for number, _ in run] == list(range(run[0][0], run[0][0] + len(run)))]
    best = max((run for run in runs if run[0][0] in (0, 1)), key=len, default=[])
    return tuple(name for _, name in best)


# -- parts of the plan -----------------------------------------------------------------------------------------------


def _head(path: Path) -> list[str]:
    return [
        "# A draft, guessed from column names alone: no cell was read. Check every choice in it.",
        f"# Where it says {BLANK}, state a public fact: from the design, the questionnaire, published totals, never",
        "# from the cells of this file. The plan is refused until all of them are filled in.",
        "stirred = 1",
        'mechanism = "survey"',
        "",
        f"dataset = {toml(dataset_called(path))}   # {Plan.decided['dataset']}",
        f"row = {BLANK}            # what one row of the file is: person, household, business ...",
        'unit = "person"            # what is protected; it must be what a row is',
        'starts = "target sample"   # whose record is protected; stirred advise shows the choices side by side',
        'holds_fixed = "frame"      # what is taken as known',
        'change = "unit"            # "unit": another unit in its place; "value": other answers of the same unit',
        f"epsilon = {BLANK}        # the budget: epsilon (Laplace noise), or rho in its place (Gaussian noise)",
        '# chosen_from = "public"   # or "earlier data" or "this data": where the choices here came from',
    ]


def _weights(found: Guess) -> list[str]:
    if found.weight is None:
        return [
            "# [weights]                # no column looks like a weight; without this section every record counts once",
            '# column = "..."',
        ]
    lines = ["[weights]", f"column = {toml(found.weight)}"]
    if found.other_weights:
        lines.append(f"# other columns that look like weights: {', '.join(found.other_weights)}")
    kind = "final" if found.final else "design"
    lines += [
        f'kind = "{kind}"{" " * (20 - len(kind) - 2)}# "design": 1 / probability of selection; "final": adjusted for',
        "                           # nonresponse or calibrated, so that one record may change all weights",
        f"lower = {BLANK}          # bounds of weights that hold for every sample the design could give",
        f"upper = {BLANK}",
        "step = 1                   # every weight is a whole multiple of this, e.g. 0.01",
    ]
    if found.final:
        lines.append('outside = "cut"            # weights beyond the bounds are cut at them; final weights need this')
    return lines


def _sample() -> list[str]:
    return [
        "[sample]                   # public facts; what is not stated is taken the careful way",
        "# most = 10000             # the most records that the file could have",
        "# population = 1000000     # the public number of units",
        "# stratum_sizes_fixed = true   # the design fixes how many are sampled in each stratum",
    ]


def _design(found: Guess) -> list[str]:
    if found.strata is None and found.clusters is None and not found.replicates:
        return [
            "# [design]                 # for standard errors of sampling",
            "# selected = 1000          # how many units are selected",
            "# population = 1000000     # of how many",
        ]
    lines = ["[design]                   # for standard errors of sampling"]
    if found.clusters is not None:
        lines += [
            f"clusters = {toml(found.clusters)}",
            f"largest_cluster = {BLANK}  # the most records that a cluster can have in the file",
        ]
    if found.strata is None:
        lines.append(f"selected = {BLANK}       # how many {'clusters' if found.clusters else 'units'} are selected")
    else:
        lines.append(f"strata = {toml(found.strata)}")
    if found.replicates:
        # Replicate weights are read for the confidential comparison only.
        lines += [
            "[design.replicates]        # for the confidential comparison of standard errors only",
            f"columns = {toml(found.replicates)}",
            f"method = {BLANK}         # brr, fay, jk1, jkn, bootstrap or sdr",
        ]
    if found.strata is not None:
        what = "clusters" if found.clusters else "units"
        lines += [
            f"[design.sizes]             # for each stratum: {what} selected, and in the population",
            f"{BLANK} = {{ selected = {BLANK}, population = {BLANK} }}",
        ]
    return lines


def _attributes(found: Guess) -> list[str]:
    lines = []
    for name in (*([found.strata] if found.strata else []), *found.attributes):
        lines += [
            "[[attributes]]",
            f"name = {toml(name)}",
            f"values = [{BLANK}]       # every value that can occur, whether or not it does; or drop the attribute",
        ]
        if name == found.strata:
            lines.append("in_frame = true            # known from the frame: other answers do not change it")
    if found.left_out:
        lines.append(f"# left out, since they look like ids, names or coordinates: {', '.join(found.left_out)}")
    return lines


def _variables(found: Guess) -> list[str]:
    lines = []
    for name in found.variables:
        lines += [
            "[[variables]]              # a column that is added up; if its values are categories, list it above",
            f"name = {toml(name)}",
            f"lower = {BLANK}          # noise grows with the largest value that there can be",
            f"upper = {BLANK}",
            'outside = "cut"            # values beyond the bounds are cut at them; "refuse" ends with an error',
        ]
    return lines


def _queries(found: Guess) -> list[str]:
    first = found.strata or next(iter(found.attributes), None)
    by = [f"by = {toml([first])}"] if first else []
    lines = ["[[queries]]                # weighted counts; shares of the budget are alike unless stated", *by]
    if found.variables:
        lines += ["[[queries]]", f"of = {toml(found.variables[0])}", *by]
    lines += [
        "",
        "# [[publish]]              # a table of estimates with standard errors and intervals",
        '# kind = "mean"            # count, total, mean, proportion, ratio or quantiles',
        f"# of = {toml(found.variables[0] if found.variables else '...')}",
    ]
    return [*lines, f"# by = {toml([first])}"] if first else lines
