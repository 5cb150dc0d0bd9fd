"""The functions of the package, such as ``check`` and ``explain``; each works for every mechanism.

``release`` and ``verify`` stand in :mod:`stirred.reports.release_with_report`, since they also write and compare the
report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors, mechanisms
from stirred._bounded_reading import is_file, plain
from stirred.releases.mechanism import Check, Data, Mechanism

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred._progress import Progress
    from stirred.estimates import Answers, Estimates
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.plans import Plan
    from stirred.semantics import Explanation
    from stirred.semantics.side_by_side import SideBySide
    from stirred.semantics.targets import Calibration
    from stirred.spec import Finding, Specification
    from stirred.spec.known_deployments.allocations import Allocation

CERTIFICATE = "certificate.json"

MIDDLE = 0.05
"""The false-alarm probability of numbers that are told at one, where it is among those asked for."""


def check(
    plan: Plan | str | Path, data: Data | None = None, *, progress: Progress | None = None, **options: Any
) -> Check:
    """Check a plan against its data: guarantee, risks and cost. Nothing is drawn; the result is confidential.

    Parameters
    ----------
    plan
        A ``SwapPlan``, a ``TopDownPlan``, a ``SurveyPlan``, or the path of a plan file.
    data
        Data to read in place of the plan's own paths: a path or a frame, or several in a mapping from table names.
    progress
        Receives the name of each stage when it begins; by default nothing is shown.
    options
        Further options of this mechanism's check, such as ``rates`` for a swap.

    Returns
    -------
    Check
        ``print`` shows it as a page of text; ``specification`` is the guarantee, ``open_stops`` are the stops that
        would end a release; ``code`` ties a release to this check (``stirred.release(..., as_checked=code)``) and is as
        confidential as the data.

    Examples
    --------
    >>> import polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> round(float(stirred.check(plan, rows).specification.budget.number), 2)
    4.6
    """
    from stirred.releases.check_code import checked

    mechanism, read = of_plan(plan)
    return checked(mechanism, read, data, progress=progress, **options)


def calibrate(
    what: Plan | str | Path,
    targets: Sequence[str] | str,
    data: Data | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Calibration:
    """Find the parameters that keep stated limits: on errors of tables, on tests, on beliefs, on epsilon or rho.

    Parameters
    ----------
    what
        A plan, the path of a plan file, or a number by its name: ``"rho"``, ``"epsilon"``, or with the value in use
        ``"rho=2.63"``.
    targets
        What is wanted, in words: ``"error of race at tract <= 5"``, ``"power at 5% <= 20%"``,
        ``"belief from 1% <= 5%"``, ``"epsilon <= 2"``; docs/calibrate.md has them all.
    data
        Data to read in place of the plan's own paths. TopDown reads the geography only; a swap reads the strata.
    progress
        Receives the name of each stage when it begins; by default nothing is shown.
    options
        Further options of this mechanism: for TopDown ``rho``, ``goal`` and ``least``; for a swap ``largest_stratum``.

    Returns
    -------
    Calibration
        ``print`` shows it as a page of text; ``plan`` is the plan with the parameters that were found.

    Examples
    --------
    >>> import stirred
    >>> stirred.calibrate("rho=2.63", "power at 5% <= 20%").fields["budget"]
    '2219/10000'
    """
    from stirred.semantics.budgets_for_targets import calibrate_number, is_number
    from stirred.semantics.targets import read_targets

    asked = read_targets(targets)
    if is_number(what):
        if options:
            raise errors.option_not_for(f"--{next(iter(options)).replace('_', '-')}", str(what))
        return calibrate_number(str(what), asked)
    mechanism, read = of_plan(what)
    return mechanism.calibrate(read, asked, data, progress=progress, **options)  # type: ignore[no-any-return]


def tabulate(
    path: str | Path, by: Sequence[str] = (), table: str | None = None, *, most_rows: int | None = None,
    place_file: Any = None, place_column: str | None = None,
) -> pa.Table:  # fmt: skip
    """Count the released rows by some columns. This is post-processing and costs no budget.

    Parameters
    ----------
    path
        A release folder, of any mechanism.
    by
        The columns to count by.
    table
        Which released table; by default the first.
    most_rows
        How many rows the table may have; by default as many as the size of its file makes likely.
    place_file
        Also count by the places of a CSV or Parquet file, or of a frame: a column named like one of the release holds
        codes of units, the other one names of places.
    place_column
        The column with the names of places, where the file has several.

    Returns
    -------
    pyarrow.Table
        A row for each combination that occurs, with its count; with places, for each place and combination.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> folder = tempfile.mkdtemp() + "/release"
    >>> _ = stirred.release(plan, rows, out=folder)
    >>> stirred.tabulate(folder, ["county"]).to_pydict()
    {'county': ['a', 'b'], 'count': [10, 10]}
    """
    mechanism, opened = of_release(path, most_rows)
    names = [by] if isinstance(by, str) else list(by)
    if place_file is not None:
        return tabulate_places(path, names, table, place_file, place_column, most_rows=most_rows)[0]
    with _as_received(path):
        return mechanism.tabulate(opened, names, table)


def tabulate_places(
    path: str | Path, by: Sequence[str], table: str | None, place_file: Any, place_column: str | None = None, *,
    most_rows: int | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:  # fmt: skip
    """As :func:`tabulate` with places, and what a reader must know of them: units in no place, or in several."""
    from stirred.tables.places import places_of, put_together

    mechanism, opened = of_release(path, most_rows)
    with _as_received(path):
        units = mechanism.place_units(opened, table)
    file = places_of(place_file, units, place_column, taken=[*by, *units])
    with _as_received(path):
        columns = [file.unit, *(name for name in by if name != file.unit)]
        found, said = mechanism.tabulate(opened, columns, table), mechanism.tabulate_note(opened, columns, table)
    made, remarks = put_together(found, file, by)
    return made, remarks if said is None else (*remarks, said)


def tabulate_note(
    path: str | Path, by: Sequence[str], table: str | None = None, *, most_rows: int | None = None
) -> str | None:
    """What a reader must know before a table of released rows; None where it can be read as it is."""
    mechanism, opened = of_release(path, most_rows)
    with _as_received(path):
        return mechanism.tabulate_note(opened, [by] if isinstance(by, str) else list(by), table)


def estimate(
    path: str | Path,
    by: Sequence[str] = (),
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    table: str | None = None,
    **options: Any,
) -> Estimates | Answers:
    """Estimate true numbers from a release, corrected for what the mechanism did, with standard errors and intervals.

    Parameters
    ----------
    path
        A release folder, or the folder of its measurements.
    by
        Attributes, recodes or columns to count by; without them the total.
    where
        Only records with these values, by attribute or column.
    table
        Which table; by default the first.
    options
        Further options of this mechanism. For a swap and TopDown ``level`` or ``places``; ``share``, a column;
        ``difference`` or ``ratio``, a column and two of its values; ``odds_ratio``, two of those. For TopDown also
        ``sources``, ``against``, and ``regress`` with ``predictors``: see
        :meth:`stirred.topdown.MeasuredRelease.compare` and :meth:`~stirred.topdown.MeasuredRelease.regress`. For a swap
        ``regress``, a formula such as ``"income ~ county"``, with ``target`` (``"population"`` or ``"file"``),
        ``reference`` (by column a value), ``categories`` (columns) and ``robust``. For a survey ``kind``, ``of``,
        ``over``, ``share``, ``difference``, ``probabilities`` and ``calibration``.

    Returns
    -------
    Estimates or Answers
        ``values``, ``standard_errors``, ``interval()`` and ``to_frame()``; of a swap also ``naive``, the values that
        the released rows give without correction. What the release only bounds is ``nan``, null in frames, and has an
        interval. A regression gives Coefficients, with ``attenuation`` beside them.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> plan = stirred.topdown.preset("teaching", {"race": ["a"], "adult": ["yes", "no"]}, ["county", "town"])
    >>> places = pl.DataFrame({"county": ["A", "A"], "town": ["x", "y"]})
    >>> people = pl.DataFrame({"town": ["x"] * 30 + ["y"] * 10, "race": "a", "adult": ["yes", "no"] * 20})
    >>> folder = tempfile.mkdtemp() + "/release"
    >>> _ = stirred.release(plan, {"persons": people, "geography": places}, out=folder)
    >>> stirred.estimate(folder, level="county").values.tolist()
    [[40.0]]

    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> folder = tempfile.mkdtemp() + "/swapped"
    >>> _ = stirred.release(plan, rows, out=folder)
    >>> stirred.estimate(folder, ["county", "tenure"], share="tenure").to_frame(0.95).shape
    (4, 8)
    """
    mechanism = mechanism_of_release(path)
    own = {option.keyword for option in mechanism.options.get("estimate", ())}
    for name in options:
        if name not in own:
            raise errors.option_not_for(name, mechanism.name, sorted(own), mechanism.instead.get(name, ""))
    return mechanism.estimate(path, by=by, where=where, table=table, **options)  # type: ignore[no-any-return]


def explain(
    what: Specification | str | Path,
    *,
    allocation: Allocation | None = None,
    concerns: Sequence[str] = (),
    false_alarms: Sequence[float] | None = None,
    deltas: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
    pairs: Sequence[str] = (),
) -> Explanation:
    """Explain a guarantee: who is protected, what an attacker could notice or come to believe, and what is not covered.

    Parameters
    ----------
    what
        A specification, a release folder, a specification file, the name of a known deployment, or a shorthand such as
        ``"rho=2.63"``.
    allocation
        How the budget is divided among queries; by default that of the release, where its mechanism divides it.
    concerns
        What to explain in place of the whole record, such as ``"cenrace"`` or ``"block within tract"``.
    false_alarms
        Probabilities of a false alarm of the tests whose power is given.
    deltas
        Probabilities of exceptions for which epsilon is given.
    groups
        Numbers of units that change together.
    pairs
        For a release made by swapping: two records to look at, such as ``"size=2,county=A;county=B"``, with held
        columns if they are to be looked at among others who share these values.

    Returns
    -------
    Explanation
        ``print`` shows it; ``to_fields()`` gives its numbers, ``pictures()`` what can be drawn.

    Examples
    --------
    >>> import stirred
    >>> "power" in stirred.explain("rho=1/2").text()
    True
    """
    from stirred.semantics import explain as run

    specification = _specification(what)
    if allocation is None and isinstance(what, str | Path):
        allocation = _own_allocation(what)
    given = {"levels": false_alarms, "deltas": deltas, "groups": groups}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value}
    if isinstance(what, str | Path):
        chosen["own"] = _own_exposure(what, pairs, false_alarms or ())
    elif pairs:
        raise errors.bad_pair(pairs[0], "pairs are looked up in a release folder, and a specification has none")
    return run(specification, allocation=allocation, concerns=concerns, **chosen)


def explain_release(mechanism: Mechanism, release: ReleaseFolder, most_rows: int) -> Explanation:
    """Explain the guarantee of an opened release, as :func:`explain` does by default; its rows are looked at only if
    no table has more than ``most_rows``."""
    from stirred.releases.folder.documents import read_specification
    from stirred.semantics import explain as run

    few = all(table["rows"] <= most_rows for table in release.dictionary.values())
    with _as_received(release.path):
        allocation = mechanism.allocation(release)
    own = _exposure(mechanism, release, (), MIDDLE) if few else None
    return run(read_specification(release.path), allocation=allocation, own=own)


def compare(
    *what: Specification | str | Path, false_alarms: Sequence[float] | None = None, prior: float = 0.01
) -> SideBySide:
    """Compare guarantees: what each protects and how strictly, what follows, and whether one is stricter than another.

    Parameters
    ----------
    what
        Two or more specifications, or anything that :func:`read` reads.
    false_alarms
        Probabilities of a false alarm at which powers of tests are compared; 0.01, 0.05 and 0.1 by default.
    prior
        The belief before the release from which the belief after it is told.

    Returns
    -------
    SideBySide
        ``print`` shows tables; ``verdicts`` has the verdict for each pair, ``picture()`` all power curves.

    Examples
    --------
    >>> import stirred
    >>> stirred.compare("epsilon=1", "epsilon=2").verdicts[0].stronger
    'first stronger'
    """
    from stirred.semantics.explained_numbers import LEVELS
    from stirred.semantics.side_by_side import side_by_side

    return side_by_side(*(_specification(one) for one in what), levels=false_alarms or LEVELS, prior=prior)


def lint(what: Specification | str | Path, *, before: Specification | str | Path | None = None) -> tuple[Finding, ...]:
    """List weaknesses of a guarantee: what it leaves out, and choices that make its number look smaller than it is.

    Parameters
    ----------
    what
        A specification, or anything that :func:`read` reads.
    before
        An earlier or rival guarantee: findings then also say what is weaker than in it.

    Returns
    -------
    tuple of Finding
        Each with ``id``, ``words``, ``why`` and ``source``.

    Examples
    --------
    >>> import stirred
    >>> "vacuous-budget" in [finding.id for finding in stirred.lint("epsilon=30")]
    True
    """
    from stirred.spec import lint as run

    return run(_specification(what), before=None if before is None else _specification(before))


def read(what: str | Path) -> Specification:
    """Read a guarantee: from a release folder, a specification file, a deployment's name, or a shorthand.

    Parameters
    ----------
    what
        A path, the name of a known deployment (``stirred deployments`` lists them), or a shorthand like ``"rho=2.63"``.

    Returns
    -------
    Specification
        The guarantee in its five parts.

    Examples
    --------
    >>> import stirred
    >>> stirred.read("epsilon=1").budget.number
    Fraction(1, 1)
    """
    from stirred.spec.loading import load

    return load(str(what))


def mechanism_of_plan(path: str | Path) -> Mechanism:
    """The mechanism that a plan file names."""
    from stirred.releases.plans import mechanism_of

    asked = mechanism_of(path)
    if asked not in mechanisms.names():
        raise errors.plan_mechanism(asked, mechanisms.names())
    return mechanisms.named(asked)


def mechanism_of_release(path: str | Path) -> Mechanism:
    """The mechanism that made a release, given its folder or a folder directly inside it."""
    folder = Path(path)
    inside = not is_file(folder / CERTIFICATE) and is_file(folder.parent / CERTIFICATE)
    if not inside and not is_file(folder / CERTIFICATE):
        reader = mechanism_of_measurements(folder)
        if reader is not None:
            return reader
    return of_release(folder.parent if inside else folder)[0]


def mechanism_of_measurements(path: str | Path) -> Mechanism | None:
    """The mechanism that reads a folder of measurements that others published; None if it is no such folder."""
    return next((one for one in mechanisms.every() if one.reads_measurements(Path(path))), None)


def _specification(what: Specification | str | Path) -> Specification:
    return read(what) if isinstance(what, str | Path) else what


def _own_allocation(what: str | Path) -> Allocation | None:
    """How the budget of a release is divided, where ``what`` is a release folder whose mechanism divides it."""
    if not is_file(Path(what) / CERTIFICATE):
        return None
    mechanism, opened = of_release(what)
    with _as_received(what):
        return mechanism.allocation(opened)


def _own_exposure(what: str | Path, pairs: Sequence[str], levels: Sequence[float]) -> Any:
    """How well tests can do on a release by the law of its mechanism; None where ``what`` is not a release folder."""
    if not is_file(Path(what) / CERTIFICATE):
        if pairs:
            raise errors.bad_pair(pairs[0], "pairs are looked up in a release folder")
        return None
    mechanism, opened = of_release(what)
    return _exposure(mechanism, opened, pairs, levels[0] if levels and MIDDLE not in levels else MIDDLE)


def _exposure(mechanism: Mechanism, release: ReleaseFolder, pairs: Sequence[str], level: float) -> Any:
    try:
        with _as_received(release.path):
            return mechanism.exposure(release, pairs, level)
    except errors.StirredError:
        if pairs:
            raise
        return None  # tables that cannot be read do not keep the documents from being explained


@contextmanager
def _as_received(path: str | Path) -> Iterator[None]:
    """Refuse a folder whose documents contradict its tables or each other, where reading it fails for that reason.

    Errors of the machine pass through, and what may be a fault of this program is not said to be one of the folder.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError):
        raise errors.not_a_release(Path(path), "its documents contradict its tables, or each other") from None
    except (TypeError, AttributeError) as problem:
        raise errors.not_read(Path(path), problem) from None


def of_plan(plan: Plan | str | Path) -> tuple[Mechanism, Plan]:
    """The mechanism of a plan, and the plan, read if it is a file."""
    from stirred.releases.plans import Plan

    if isinstance(plan, Plan):
        return mechanisms.named(plan.mechanism), plan
    if not isinstance(plan, str | Path):
        raise errors.not_a_plan(type(plan).__name__)
    mechanism = mechanism_of_plan(plan)
    return mechanism, mechanism.read_plan(plan)


def of_release(path: str | Path, most_rows: int | None = None) -> tuple[Mechanism, ReleaseFolder]:
    """The mechanism of a release, and its folder, opened."""
    from stirred.releases.folder.release_folder import ReleaseFolder

    with _as_received(path):
        opened = ReleaseFolder.open(path, most_rows)
    if opened.mechanism not in mechanisms.names():
        raise errors.not_a_release(
            opened.path, f"it names the mechanism {plain(repr(opened.mechanism), 80)}, which this version does not know"
        )
    return mechanisms.named(opened.mechanism), opened
