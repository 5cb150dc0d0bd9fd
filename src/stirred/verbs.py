"""The functions of the package, such as ``check``, ``release`` and ``explain``; each works for every mechanism.

They call mechanisms and reports, which never call them. :func:`release` and :func:`verify` write and compare a report
too: ``report.html``, from what the release publishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors
from stirred._progress import Progress, shown_by
from stirred.mechanisms import (
    as_received,
    mechanism_of_measurements,
    mechanism_of_release,
    named,
    open_release,
    read_plan,
)
from stirred.releases.mechanism import Check, Data, Release

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.estimates import Answers, Estimates
    from stirred.releases.context import Context
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.plans import Plan
    from stirred.releases.verdicts import Verdicts
    from stirred.semantics import Explanation
    from stirred.semantics.side_by_side import SideBySide
    from stirred.semantics.targets import Calibration
    from stirred.spec import Finding, Specification
    from stirred.spec.known_deployments.allocations import Allocation


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

    mechanism, read = read_plan(plan)
    with shown_by(progress):
        return checked(mechanism, read, data, **options)


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
    mechanism, read = read_plan(what)
    with shown_by(progress):
        return mechanism.calibrate(read, asked, data, **options)  # type: ignore[no-any-return]


def release(
    plan: Plan | str | Path,
    data: Data | None = None,
    *,
    out: str | Path,
    work: str | Path | None = None,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    as_checked: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
) -> Release:
    """Protect the data as a plan says and write a release folder, which appears complete or not at all.

    Parameters
    ----------
    plan
        A ``SwapPlan``, a ``TopDownPlan``, a ``SurveyPlan``, or the path of a plan file.
    data
        Data to read in place of the plan's own paths: a path or a frame, or several in a mapping from table names.
    out
        The folder to write; it must not exist.
    work
        For TopDown, the private folder that keeps the draw. If it exists, the release is made from it and nothing is
        spent.
    confidential
        A new folder for the comparison of released with true values. It is confidential.
    ledger
        The dataset's ledger, its path, or its address on a server (``postgresql://...``). The release is recorded in it
        before it appears; if it would exceed the ledger's limit, an error is raised and nothing is released.
    as_checked
        The ``code`` of a check: if the plan or the data are not those that it has seen, nothing is drawn.
    progress
        Receives the name of each stage when it begins; by default nothing is shown.
    report
        Whether ``report.html``, the page about the guarantee for people, is written into the folder.

    Returns
    -------
    Release
        What was released, for use in memory: a ``SwapRelease``, a ``TopDownRelease`` or a ``SurveyRelease``.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> made = stirred.release(plan, rows, out=tempfile.mkdtemp() + "/release")
    >>> made.frame().shape
    (20, 3)
    """
    from stirred.releases.steps import Request, releasing

    if report:  # what writes one is imported before anything is drawn, or not at all
        from stirred.reports.folder_report import add_report

    mechanism, read = read_plan(plan)
    asked = Request.of(
        out, work=work, confidential=confidential, ledger=ledger, as_checked=as_checked, progress=progress
    )
    with releasing(mechanism, read, data, asked) as unfinished:
        if report:
            add_report(unfinished)
    return unfinished.release


def release_measurements(
    measurements: str | Path,
    *,
    out: str | Path,
    work: str | Path | None = None,
    progress: Progress | None = None,
    report: bool = True,
    **options: Any,
) -> Release:
    """Make a release from measurements that others published, as :func:`release` does from data; nothing is spent.

    ``options`` are those of the mechanism that reads the measurements.
    """
    from stirred.releases.steps import Request, releasing_measurements

    if report:
        from stirred.reports.folder_report import add_report

    mechanism, asked = mechanism_of_measurements(measurements), Request.of(out, work=work, progress=progress)
    with releasing_measurements(mechanism, measurements, asked, **options) as unfinished:
        if report:
            add_report(unfinished)
    return unfinished.release


def write(
    made: Release,
    out: str | Path,
    *,
    confidential: str | Path | None = None,
    data: Data | None = None,
    ledger: Ledger | str | Path | None = None,
    for_tests: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write a release that is in memory, as its own ``write`` does, and with a report."""
    from stirred.releases.steps import Request, publishing
    from stirred.reports.folder_report import add_report

    asked = Request.of(out, confidential=confidential, ledger=ledger, for_tests=for_tests, progress=progress)
    with publishing(named(made.draw.plan.mechanism), made, data, asked) as unfinished:
        add_report(unfinished)
    return asked.out


def verify(
    path: str | Path,
    *,
    signers: str | Path | None = None,
    withdrawn: str | Path | None = None,
    most_rows: int | None = None,
) -> Verdicts:
    """Check a release from its own files: manifest, plan, guarantee, columns, invariants, report, signature.

    The folder may come from anybody: nothing outside it is opened, and what it must contain is derived from its plan.

    Parameters
    ----------
    path
        A release folder, of any mechanism.
    signers
        A file of keys that you trust, in the format of OpenSSH's ``allowed_signers``: the release must then be signed
        by one of them.
    withdrawn
        The list of withdrawn releases that the publisher gives out (``stirred ledger withdrawn``). Without it only a
        notice in the folder can tell that a release was withdrawn.
    most_rows
        How many rows a table may have; by default as many as the size of its file makes likely.

    Returns
    -------
    Verdicts
        A list of everything that was checked, each with ``holds``, ``words`` and ``state``: ``"holds"``,
        ``"contradicted"``, ``"not compared"`` (another version wrote it), ``"could not be checked"`` (the machine did
        not allow it), ``"withdrawn"`` (by its publisher) or ``"note"`` (a remark). ``holds`` is true only of what was
        compared and is so, and of remarks. The list's own ``state`` is the answer for all, and ``answer`` says it in
        one line; printed, a line for each follows.

    Examples
    --------
    >>> import tempfile, polars as pl, stirred
    >>> rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    >>> plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    >>> folder = tempfile.mkdtemp() + "/release"
    >>> _ = stirred.release(plan, rows, out=folder)
    >>> found = stirred.verify(folder)
    >>> all(verdict.holds for verdict in found)
    True
    >>> print(found.answer)
    Everything was compared, and nothing contradicts. That data are right or a draw random, no folder shows.
    """
    from stirred.releases.folder.manifest import signature_verdicts
    from stirred.releases.folder.verifying import failed, says_nothing, verify_with
    from stirred.releases.ledger.withdrawals import withdrawal_verdicts
    from stirred.releases.verdicts import Verdicts
    from stirred.reports.folder_report import report_verdicts

    try:
        mechanism, opened = open_release(path, most_rows)
        listed = None if withdrawn is None else Path(withdrawn)
        status = withdrawal_verdicts(opened.path, _dataset(opened), listed)
        signed = signature_verdicts(opened.path, None if signers is None else Path(signers))
    except Exception as problem:
        if not says_nothing(problem):
            raise
        return Verdicts([failed("the release", problem)])
    found = verify_with(opened, mechanism.verify, lambda one: report_verdicts(mechanism, one))
    return Verdicts([*status, *found, *signed])


def _dataset(opened: ReleaseFolder) -> str:
    """The name of the dataset that a release's certificate states; empty if it states none that can be read."""
    domain = opened.certificate["specification"].get("domain")
    return str(domain.get("name", "")) if isinstance(domain, dict) else ""


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
    if place_file is not None:
        return tabulated(path, by, table, most_rows=most_rows, place_file=place_file, place_column=place_column)[0]
    mechanism, opened = open_release(path, most_rows)
    with as_received(path):
        return mechanism.tabulate(opened, [by] if isinstance(by, str) else list(by), table)


def tabulated(
    path: str | Path, by: Sequence[str], table: str | None, *, most_rows: int | None = None,
    place_file: Any = None, place_column: str | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:  # fmt: skip
    """As :func:`tabulate`, and what a reader must know of the table: how far it can be read as it is, and with places
    the units that are in none, or in several."""
    from stirred.tables.places import places_of, put_together

    mechanism, opened = open_release(path, most_rows)
    names = columns = [by] if isinstance(by, str) else list(by)
    file = None
    if place_file is not None:
        with as_received(path):
            units = mechanism.place_units(opened, table)
        file = places_of(place_file, units, place_column, taken=[*names, *units])
        columns = [file.unit, *(name for name in names if name != file.unit)]
    with as_received(path):
        found, said = mechanism.tabulate(opened, columns, table), mechanism.tabulate_note(opened, columns, table)
    found, remarks = (found, ()) if file is None else put_together(found, file, names)
    return found, remarks if said is None else (*remarks, said)


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
    from stirred.reports.subjects import explained

    return explained(
        what, allocation=allocation, concerns=concerns, levels=false_alarms, deltas=deltas, groups=groups, pairs=pairs
    )


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


def report(
    what: Specification | Explanation | Plan | str | Path | Sequence[Specification | Explanation | Plan | str | Path],
    out: str | Path,
    *,
    context: Context | None = None,
    **options: Any,
) -> Path:
    """Write what guarantees mean as one HTML page that needs no other file.

    Parameters
    ----------
    what
        An explanation, a specification, a plan, or anything that :func:`stirred.read` reads; or a list of several,
        which are then also compared.
    out
        The file to write; it must not exist.
    context
        Answers about the five safes, as a plan has them; by default those of the release, where ``what`` is its folder.
    options
        For a plan whose guarantee depends on the data, what is known of these: ``largest_stratum`` for a swap.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, stirred
    >>> stirred.report("rho=1/2", tempfile.mkdtemp() + "/meaning.html").suffix
    '.html'
    """
    from stirred.reports.page import write_report
    from stirred.reports.subjects import subject

    out = Path(out)
    if out.exists():
        raise errors.output_exists(out)
    several = [what] if isinstance(what, str) or not isinstance(what, Sequence) else list(what)
    if not several:
        raise errors.PlanError(
            "report-of-nothing",
            "A report needs something to report.",
            "Name a release folder, a plan, a specification, a deployment, or a budget such as 'rho=2.63'. "
            "docs/reports.md (stirred docs reports) has examples.",
        )
    return write_report([subject(one, context=context, options=options) for one in several], out)


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


def _specification(what: Specification | str | Path) -> Specification:
    return read(what) if isinstance(what, str | Path) else what
