"""The interface that every mechanism implements, and the protocols of checks, draws and releases.

A mechanism is one object with a name. Everything that the command line and the package's own functions do with plans
and releases goes through it, so a new mechanism is a folder with a :class:`Mechanism` in it and one line in
:mod:`stirred.mechanisms`.

The stages, in their order:

* A **plan** is frozen and public; ``published()`` is the part of it that a release states.
* A **check** reads the confidential data and draws no randomness. What it says is confidential.
* A **draw** reads the data once, draws all randomness, and is what the budget is spent on.
* **Finishing** is post-processing of a draw: free and repeatable. It gives a **release**, which can be written.
* **Verifying**, **tabulating** and **estimating** read a release folder and nothing else.

For audits a mechanism makes :class:`AuditPair`s: two inputs of one universe, from nobody's data, that a guarantee says
can hardly be told apart. An input may hold many *parts*, of which each is in its first or in its second form, whatever
the others are. Inputs that differ in one part are at the stated ``distance``. Where a fair coin decides the form of
each part, every part of one run is a separate attempt to tell the two forms apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from stirred import errors

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from stirred.noise import RandomSource
    from stirred.releases.folder.documents import Certificate
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.plans import Plan
    from stirred.releases.verdicts import Verdict
    from stirred.spec import Specification
    from stirred.spec.known_deployments.allocations import Allocation


@dataclass(frozen=True, eq=False)
class AuditPair:
    """Two forms of an input that a program must not tell apart too well."""

    name: str
    """Short and stable: ``smallest-stratum``."""
    words: str
    """What differs, and where, in plain words."""
    looked_at: str
    """What of the output is looked at, in plain words."""
    distance: int
    """In how many units of the guarantee the two forms differ."""
    parts: int
    """How many parts an input has."""
    specification: Specification
    """The guarantee that the plan states for these inputs."""
    tables: Callable[[Sequence[bool]], Mapping[str, pl.DataFrame]]
    """The input in which these parts are in their second form."""
    outcomes: Callable[[Mapping[str, pl.DataFrame]], Sequence[Hashable]]
    """What is seen of each part in an output: something that can be counted, or a number."""

    @property
    def first(self) -> Mapping[str, pl.DataFrame]:
        """The input with every part in its first form."""
        return self.tables([False] * self.parts)

    @property
    def second(self) -> Mapping[str, pl.DataFrame]:
        """The input with every part in its second form."""
        return self.tables([True] * self.parts)


Data = object
"""The data of a plan: a path or a frame, or several in a mapping from the name of the table."""


@runtime_checkable
class Check(Protocol):
    """The result of checking a plan against its data. Confidential; ``print`` shows it as a page of text."""

    @property
    def specification(self) -> Specification:
        """The guarantee that a release of this plan would have."""

    @property
    def open_stops(self) -> Sequence[errors.StirredError]:
        """The reasons for which a release of this plan would stop and which the plan does not allow."""

    @property
    def code(self) -> str | None:
        """Ties a release to this check (``as_checked``); as confidential as the data, of which it has a hash."""

    def to_json(self) -> str:
        """The check as JSON."""


@runtime_checkable
class Drawable(Protocol):
    """A check that has pictures, for ``stirred check --figures``."""

    def pictures(self) -> Sequence[Any]:
        """Pictures as data (:class:`stirred.semantics.pictures.shapes.Picture`), for ``reports`` to draw.
        Confidential."""


@runtime_checkable
class Draw(Protocol):
    """The result of drawing: everything that a release needs of the data."""

    @property
    def plan(self) -> Plan:
        """The plan that was drawn."""

    @property
    def specification(self) -> Specification:
        """The guarantee of the draw."""

    @property
    def for_release(self) -> bool:
        """False if the randomness came from a seed, as in tests: such a draw must not be published."""

    @property
    def nonce(self) -> str:
        """The identity of the draw: random, and stated by every release made from it."""

    def finish(self) -> Release:
        """Post-process the draw into a release; costs nothing."""


@runtime_checkable
class KeptDraw(Draw, Protocol):
    """A draw whose values are in a work folder, from which it can be finished again without spending."""

    @property
    def folder(self) -> Path:
        """The work folder."""

    @property
    def entry(self) -> tuple[int, str] | None:
        """Number and seal of the ledger's entry that recorded the draw."""

    def seal(self, work: Path, entry: tuple[int, str] | None) -> KeptDraw:
        """Write the ledger's entry and the manifest into the unfinished folder; returns the draw as it will be in
        ``work``."""

    def to_be_removed(self) -> KeptDraw:
        """The draw, in a work folder that is removed as soon as the release is written: the release may take its files
        instead of copies of them."""


@runtime_checkable
class Release(Protocol):
    """A finished draw, ready to be written."""

    @property
    def draw(self) -> Draw:
        """The draw that this release was made from."""

    @property
    def specification(self) -> Specification:
        """The guarantee of the release."""

    @property
    def summary(self) -> Sequence[str]:
        """Lines for the terminal that say what was released; the first is printed after the name of the folder."""

    def write_files(self, folder: Path) -> Certificate:
        """Write everything that a recipient gets into an empty folder, but certificate and manifest.

        The certificate is returned; it is written, and the manifest with it, once the release is paid for.
        """

    def write_confidential(self, folder: Path, data: Data | None) -> None:
        """Write the comparison with the true values. ``data`` are read only if this run has
        not read them yet."""


@dataclass(frozen=True)
class Option:
    """An option or argument that a mechanism adds to a command.

    ``keyword`` is the argument of the library function that receives it, after ``read`` has turned what was typed into
    what the function takes. An option ``of_plan`` goes to the reading of the plan instead.
    """

    name: str
    help: str
    keyword: str
    type: type = str
    several: bool = False
    """Whether it can be given several times; the function then receives a list."""
    default: Any = None
    argument: bool = False
    """Given by position and required, without a name."""
    choices: tuple[str, ...] = ()
    read: Callable[[Any], Any] | None = None
    of_plan: bool = False
    of_measurements: bool = False
    """Whether it is about reading measurements that others published (``release --measurements``, or ``estimate`` of
    such a folder)."""

    def value(self, given: Any) -> Any:
        """What the library function receives for what was typed."""
        return given if self.read is None else self.read(given)


FORM_OPTIONS = (
    Option("--delimiter",
           "The character between the fields of a CSV file, or the word tab. Default: found from the file.",
           "delimiter"),
    Option("--encoding",
           "The text encoding of a CSV file, such as utf-8, cp1252 or utf-16. Default: found from the file.",
           "encoding"),
    Option("--names",
           "The names of the columns of FILE, separated by commas, if it is a CSV file without a header line.",
           "names", read=lambda given: [name.strip() for name in given.split(",")]),
    Option("--header",
           "The first line of FILE and of other CSV files is a header, although it looks like a record.",
           "header", bool),
)  # fmt: skip
"""Options of ``init`` for mechanisms that read CSV files."""


def places(given: Sequence[str]) -> list[tuple[str, str]]:
    """``tract=44007000101`` as a level and a unit of it."""
    found = []
    for text in given:
        level, sign, unit = (part.strip() for part in text.partition("="))
        if not (level and sign and unit):
            raise errors.estimate_question(f"The place {text!r}", "must be written as level=name")
        found.append((level, unit))
    return found


PLACE = Option(
    "--place",
    "Estimate for this unit, such as tract=44007000101. Repeatable: all units together are one place.",
    "places",
    several=True,
    read=places,
)
"""An option of ``estimate`` for mechanisms that know places."""

PLACES_HELP = (
    "A CSV or Parquet file of places such as districts: a column with the codes of units, named like a column of the "
    "release (block), and one with the places' names. Every place gets its own rows."
)
PLACE_COLUMN_HELP = "With --places: the column with the places' names, where the file has several."
PLACES = Option("--places", PLACES_HELP, "place_file", Path)
PLACE_COLUMN = Option("--place-column", PLACE_COLUMN_HELP, "place_column")
"""Options of ``estimate`` for mechanisms that can answer for unions of units."""


def _contrast(text: str, words: Sequence[str]) -> Any:
    """``county=Barnstable,Suffolk`` as a column and two of its values; one of some words as it is."""
    if text.strip() in words:
        return text.strip()
    column, sign, values = text.partition("=")
    pair = tuple(part.strip() for part in values.split(",") if part.strip())
    if not (column.strip() and sign) or len(pair) != 2 or pair[0] == pair[1]:
        raise errors.estimate_question(f"The comparison {text!r}", "must be written as column=one,other")
    return column.strip(), pair[0], pair[1]


def _contrasts(text: str, words: Sequence[str]) -> tuple[Any, Any]:
    parts = text.split(";")
    if len(parts) != 2:
        raise errors.estimate_question(
            f"The odds ratio {text!r}", "must be written as column=one,other;column=one,other"
        )
    return _contrast(parts[0], words), _contrast(parts[1], words)


def measures(*words: str) -> tuple[Option, ...]:
    """Options of ``estimate`` for shares and comparisons; ``words`` are comparisons that have a name of their own."""
    return (
        Option("--share",
               "Estimate the share of each value of this column; shares add up to 1 within the other columns.",
               "share"),
        Option("--difference",
               "Estimate the number for one value minus that for another, such as county=Barnstable,Suffolk.",
               "difference", read=lambda text: _contrast(text, words)),
        Option("--ratio",
               "Estimate the number for one value divided by that for another, such as county=Barnstable,Suffolk.",
               "ratio",
               read=lambda text: _contrast(text, words)),
        Option("--odds-ratio", "Estimate the odds ratio of two columns, such as 'county=Barnstable,Suffolk;"
               "tenure=owned,rented'.", "odds_ratio", read=lambda text: _contrasts(text, words)),
    )  # fmt: skip


REGRESS = Option(
    "--regress",
    "Fit a linear regression. For a swapped file, uncorrected and corrected for the swap: 'income ~ county + size', or "
    "'tenure=rented ~ county' for the share of rented; numbers are used as numbers, text as categories. For TopDown, "
    "with --level: the estimate of every unit on columns of --predictors, such as --share sex --regress 'sex=f ~ "
    "income + rural'.",
    "regress",
)
"""Regressions have one name, whatever made the release."""


@dataclass(frozen=True)
class Verb:
    """A command that only one mechanism has."""

    name: str
    help: str
    options: tuple[Option, ...]
    run: Callable[..., Sequence[str]]
    """Does the work; returns the lines to print."""
    pictures: Callable[..., Sequence[Any]] | None = None
    """Makes pictures from the same arguments, for a verb with the option ``--figures``, which is then not given to
    ``run``; the command line saves them."""
    example: str = ""
    """A line that can be typed, shown at the end of the command's help."""


@dataclass(frozen=True)
class AnalystNote:
    """Something that analysts of a release need to know, for its report."""

    sort: Literal["exact", "corrected", "unusable", "accuracy", "put back", "command"]
    words: str
    """A text; of a command what to type, in which FOLDER stands for the release."""
    rows: tuple[tuple[str, ...], ...] = ()
    """A table that goes with it, the first row the heading."""


@dataclass(frozen=True)
class CustodianNote:
    """Something confidential about a release, for the custodian's appendix to its report."""

    sort: Literal["errors", "revealed"]
    """True errors of this release, or what its invariants reveal about these data."""
    words: str
    rows: tuple[tuple[str, ...], ...] = ()
    """A table that goes with it, the first row the heading."""


class Mechanism:
    """A way of making releases. Methods that a mechanism does not implement raise an error that says so.

    A subclass defines at least ``name``, ``title``, ``plan_type``, ``inputs``, ``check``, ``draw``, ``verify``
    and ``tabulate``.
    Its module imports nothing heavy at the top, since every command loads every mechanism's module.
    """

    name: ClassVar[str]
    """What ``mechanism = "..."`` in a plan says."""
    title: ClassVar[str]
    """Its full name, for pages and help texts."""
    keeps_draws: ClassVar[bool] = False
    """Whether a draw is kept in a work folder, from which a release can be finished again without spending."""
    options: ClassVar[Mapping[str, tuple[Option, ...]]] = {}
    """By command (``init``, ``check``, ``release``, ``estimate``, ``calibrate``, ``report``) its own options."""
    instead: ClassVar[Mapping[str, str]] = {}
    """By the keyword of an option of ``estimate`` that only other mechanisms have: a sentence on what to give here."""
    verbs: ClassVar[tuple[Verb, ...]] = ()

    # -- plans -------------------------------------------------------------------------------------------------

    @property
    def plan_type(self) -> type[Plan]:
        """The class of this mechanism's plans."""
        raise errors.not_offered(self.name, "plans")

    def read_plan(self, path: str | Path, **options: Any) -> Plan:
        """Read a plan file; ``options`` are those marked ``of_plan``."""
        return self.plan_type.from_toml(path, **options)

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        """A first plan for ``file`` as TOML, with paths relative to ``folder``; no cell of the file is read."""
        raise errors.not_offered(self.name, "a draft of a plan")

    # -- the custodian -----------------------------------------------------------------------------------------

    def inputs(self, plan: Any, data: Data | None = None) -> dict[str, Data]:
        """By table, the path or frame that a check or a draw of this plan reads, and no other."""
        raise errors.not_offered(self.name, "a list of its inputs")

    def check(self, plan: Any, data: Data | None = None, **options: Any) -> Check:
        """Check a plan against its data; draws nothing."""
        raise errors.not_offered(self.name, "a check")

    def warm_up(self) -> None:
        """Begin what a release needs and what can be done while its data are read, such as compiling."""
        return

    def specify(self, plan: Any) -> Specification | None:
        """The guarantee of a plan; None where it depends on the data."""
        return None

    def check_ledger(self, plan: Any, ledger: Ledger) -> None:
        """Raise if a ledger lacks a release that this plan builds on; called before any data are read."""
        return

    def draw(
        self,
        plan: Any,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
    ) -> Draw:
        """Read the data once and draw. A mechanism that keeps draws writes them into ``folder``.

        ``keep_truth`` keeps in memory what the confidential comparison needs. A ``source`` other than the operating
        system's is for tests, and marks everything that comes from it.
        """
        raise errors.not_offered(self.name, "a draw")

    def reopen(self, plan: Any, work: Path) -> KeptDraw:
        """A draw that was kept in ``work``; the plan may differ in what only finishing uses."""
        raise errors.not_offered(self.name, "work folders")

    def is_work(self, folder: Path) -> bool:
        """Whether a folder is a finished work folder of this mechanism."""
        return False

    def paid_entry(self, folder: Path) -> int | None:
        """The number of the ledger's entry that an unfinished work folder names; None if it names none."""
        return None

    # -- measurements that others published ---------------------------------------------------------------------

    def reads_measurements(self, folder: Path) -> bool:
        """Whether a folder holds measurements that others published, in a form that this mechanism reads."""
        return False

    def adopt(self, measurements: Path, folder: Path, **options: Any) -> KeptDraw:
        """Write published measurements into ``folder`` as a draw; nothing is drawn and nothing is spent."""
        raise errors.not_offered(self.name, "releases from published measurements")

    def readopt(self, measurements: Path, work: Path, **options: Any) -> KeptDraw:
        """The draw that :meth:`adopt` made of these measurements with these options, kept in ``work``."""
        raise errors.not_offered(self.name, "releases from published measurements")

    def spend_words(self, plan: Any) -> str:
        """What the ledger's entry says about a release of this plan."""
        return f"{self.title}, plan {plan.hash()[:12]}"

    # -- the recipient -----------------------------------------------------------------------------------------

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        """What this mechanism's releases can be checked for, beyond manifest and documents."""
        raise errors.not_offered(self.name, "a verification")

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        """Counts of a released table by some of its columns."""
        raise errors.not_offered(self.name, "tables")

    def tabulate_note(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str | None:
        """What a reader must know before a table of released rows: in what it is biased, and what corrects it."""
        return None

    def place_units(self, release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
        """The columns of a released table whose values a file of places may put together, the finest first, each with
        all its values where these are listed; a file that names others is then refused."""
        raise errors.not_offered(self.name, "tables by a file of places")

    def estimate(self, release: str | Path, **options: Any) -> Any:
        """Estimates of true counts from a release, with standard errors; see :mod:`stirred.estimates`."""
        raise errors.not_offered(self.name, "estimates")

    # -- explanations, calibration, audits, reports ------------------------------------------------------------

    def allocation(self, release: ReleaseFolder) -> Allocation | None:
        """How the budget of a release is divided among queries; ``explain`` uses it for single attributes."""
        return None

    def exposure(self, release: ReleaseFolder, pairs: Sequence[str] = (), level: float = 0.05) -> Any:
        """How well tests can do on a release by the law of this mechanism itself, where that is less than its guarantee
        allows; None where nobody knows. ``pairs`` are records that the reader names."""
        if pairs:
            raise errors.not_offered(self.name, "numbers for pairs of records")
        return None

    def calibrate(self, plan: Any, targets: Sequence[Any], data: Data | None = None, **options: Any) -> Any:
        """The parameters at which a plan keeps targets, which are :mod:`stirred.semantics.targets`; the answer is a
        :class:`stirred.semantics.targets.Calibration`."""
        raise errors.not_offered(self.name, "calibration")

    def audit_pairs(self, plan: Any) -> Sequence[AuditPair]:
        """Worst pairs of neighbouring inputs of a plan, to test whether the guarantee holds."""
        raise errors.not_offered(self.name, "pairs for an audit")

    def specify_plan(self, plan: Any, **options: Any) -> Specification:
        """The guarantee of a plan whose data are not read; ``options`` are those of the command ``report``."""
        stated = self.specify(plan)
        if stated is None:
            raise errors.report_needs_data(self.title)
        return stated

    def for_analysts(self, release: ReleaseFolder) -> Iterable[AnalystNote]:
        """What analysts of a release need to know: which tables are right, how far off others are, what to type."""
        return ()

    def for_custodian(self, release: ReleaseFolder, plan: Any, data: Data | None = None) -> Iterable[CustodianNote]:
        """True errors of a release, and what its invariants reveal on these data. Confidential: ``plan`` and ``data``
        are those that the release was made from."""
        return ()

    def prepare_demo(self, folder: Path) -> Plan:
        """Write generated data and a plan for them into a new folder, and print what they are."""
        raise errors.not_offered(self.name, "a demonstration")

    def show_demo(self, folder: Path, made: Release, began: float) -> None:
        """Print what a release of that plan shows, which is in ``release`` there; ``began`` is the time by
        ``time.monotonic`` at which the demonstration began."""
        raise errors.not_offered(self.name, "a demonstration")

    def __repr__(self) -> str:
        return f"<mechanism {self.name!r}: {self.title}>"
