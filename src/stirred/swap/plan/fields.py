"""The plan of a swap: the role of each column, the swap rate, and where these choices came from.

A plan has one ``rate``, or ``rates`` by rule (:class:`RateRule`), which may look at what a swap keeps and at nothing
else. The variables of the paper (section 3.2.1): ``match`` is V_Match, ``swap`` is V_Swap, ``hold`` is V_Hold without
V_Match. A plan names columns and public values only; nothing in it is read from the data. In a file it is TOML whose
numbers are read as decimals, so that 0.05 is 1/20 and not the nearest binary fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from stirred import errors
from stirred.releases.plans import MOST_SECTIONS, InputSection, Names, Plan, dicts
from stirred.swap.law.theorem import kept_share
from stirred.swap.plan.sections import (
    MAIN,
    Coarsening,
    Held,
    LinkedTable,
    Published,
    PublishedTable,
    Rate,
    RateRule,
    Round,
    Share,
    one_role_each,
)

_ALLOWED = ("rate-zero-or-one", "few-change", "many-unchangeable", "many-alone", "undone-by-releases")
"""Stops without a column that a plan may allow."""
_ALLOWED_OF_COLUMNS = ("determines:", "distinct:", "tells:", "undone:", "changes-text:")
_MOST_RULES = 20
_FEWEST_KEPT = Fraction(1, 1000)
"""A selection of exactly one record is drawn again; the chance of any other may not be below this."""


class SwapPlan(Plan):
    """The plan of a swap. Frozen; docs/plans.md explains every field.

    Parameters
    ----------
    match, swap, hold
        Columns by which records must agree to be swapped, columns whose values are exchanged, and columns that stay
        (``hold="rest"``: all others).
    rate
        The probability that a record is selected, taken exactly as written: 0.05 is 1/20.
    rates
        Instead of ``rate``: rules that give records different rates, as :class:`RateRule`. The last says ``otherwise``.
    coarsen
        A rule that merges values of a match column where groups are small, as :class:`Coarsening`.
    rounds
        Later rounds, from coarse to fine, each on what the round before gave, as :class:`Round`.
    unit
        What one row is, in words: ``"household"``.
    dataset, chosen_from, looked_at, format, licence, released_by, context
        The dataset's name in a ledger; where the choices came from; the format of released files; the licence of the
        data, who releases them, and answers about the five safes, for README and certificate.
    drop, id, nulls
        Columns that are not released; the column that identifies a record, drawn anew; columns that may have nulls.
    linked
        Tables whose rows belong to records, as :class:`LinkedTable`.
    publish, saturated
        Tables to write beside the microdata, each a list of columns or a :class:`PublishedTable`; whether to write all
        combinations too.
    most_unchangeable
        The share of records that may lie in groups in which nothing can change; above it a release stops.
    most_told
        The share of records whose swap values held columns may predict beyond the match variables; above it a release
        stops.
    most_recovered
        The share of changed records that rows which belong together may let someone put back; above it a release
        stops.
    most_alone
        The share of records that may be the only one with their match and swap values, whose counts are published
        exactly; above it a release stops. Without it nothing stops for that.
    allow
        Stops of a check that the release may pass, by name.
    input
        Where the main table is and how to read it.

    Examples
    --------
    >>> plan = SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
    >>> plan.rate
    Fraction(1, 20)
    """

    mechanism: ClassVar[str] = "swap"
    earlier_names: ClassVar[Mapping[str, str]] = {"tables": "publish"}
    private: ClassVar[frozenset[str]] = Plan.private | {"drop"}
    decided: ClassVar[Mapping[str, str]] = {
        **Plan.decided,
        "most_unchangeable": "of the records, those in groups where nothing can change",
        "most_told": "of the records, those whose swap values held columns predict",
        "most_recovered": "of the changed records, those that could be put back",
        "most_alone": "of the records, those that are alone in a count by match and swap values",
    }

    match: Names = ()
    swap: Names = ()
    hold: Held = ()
    drop: Names = ()
    id: str | None = None
    rate: Rate | None = None
    rates: tuple[RateRule, ...] = Field(default=(), max_length=_MOST_RULES)
    """Rules that give records different rates, instead of ``rate``."""
    coarsen: Coarsening | None = None
    """A rule that merges values of a match column where groups are small."""
    rounds: tuple[Round, ...] = Field(default=(), max_length=_MOST_RULES)
    """Rounds after the first, each on what the round before gave."""
    nulls: Names = ()
    linked: tuple[LinkedTable, ...] = Field(default=(), max_length=MOST_SECTIONS)
    publish: tuple[Published, ...] = Field(default=(), max_length=MOST_SECTIONS)
    """Tables to be written beside the microdata, each by its columns."""
    saturated: bool = False
    """Whether to write also the counts of all combinations of values."""
    most_unchangeable: Share = Fraction(1, 4)
    """The largest share of records that may lie in strata where nothing can change."""
    most_told: Share = Fraction(1, 2)
    """The largest share of records whose swap values held columns may tell."""
    most_recovered: Share = Fraction(1, 10)
    """The largest share of changed records that someone may be able to put back."""
    most_alone: Share | None = None
    """The largest share of records that may be the only one of a count by match and swap variables."""
    allow: Names = ()
    input: InputSection = Field(default_factory=InputSection)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        if not self.swap:
            raise errors.empty_role("swap")
        if not self.hold and not self.linked:
            raise errors.empty_role("hold")
        roles = {
            "match": list(self.match),
            "swap": list(self.swap),
            "hold": [] if self.hold == "rest" else list(self.hold),
            "drop": list(self.drop),
            "id": [self.id] if self.id else [],
        }
        one_role_each(MAIN, roles)
        for name in self.allow:
            if name not in _ALLOWED and not name.startswith(_ALLOWED_OF_COLUMNS):
                raise errors.unknown_allowance(name)
        self._either_rate_or_rates()
        if self.coarsen is not None and self.coarsen.column not in self.match:
            raise errors.coarsen_not_match(self.coarsen.column, self.coarsen.column in self.swap)
        self._require_coarse_to_fine()
        if self.rate in (0, 1) and "rate-zero-or-one" not in self.allow:
            raise errors.PlanError(
                "rate-zero-or-one",
                f"With a swap rate of {self.rate} the guarantee is infinite: no epsilon holds (Theorem 3.2.4).",
                'Choose a rate strictly between 0 and 1, or add "rate-zero-or-one" to allow.',
            )
        if self.linked and not self.id:
            raise errors.PlanError(
                "linked-needs-id",
                "The plan links another table but names no id column of the main table.",
                'Write id = "..." with the column that identifies a record.',
            )
        if any(table.flat for table in self.linked):
            self._require_flat()
        names = [table.name for table in self.linked]
        for name in names:
            if names.count(name) > 1:
                raise errors.linked_name(name)
        for table in self.linked:
            for column, target in table.copies.items():
                if target not in self.swap:
                    raise errors.PlanError(
                        "unknown-copy",
                        f"Table '{table.name}' says that '{column}' copies '{target}', which is not a swap variable.",
                        "Only copies of swap variables are rewritten; list other columns under hold.",
                    )
            for column in () if table.hold == "rest" else table.hold:
                if column in self.swap:
                    raise errors.two_roles(table.name, column, "hold", "the swap variables it would copy")
        self.require_tables(self.published_tables)
        return self

    @property
    def published_tables(self) -> tuple[PublishedTable, ...]:
        """The tables to be written beside the microdata."""
        return tuple(PublishedTable.of(one) for one in self.publish)

    def require_tables(self, tables: Sequence[PublishedTable]) -> None:
        """Raise if one is of a linked table that the plan does not have, or adds up what is swapped."""
        linked = {one.name: one for one in self.linked}
        for table in tables:
            if table.linked is not None and table.linked not in linked:
                raise errors.published_of_unknown(table.linked, list(linked))
            for name in table.added:
                copies = linked[table.linked].copies if table.linked else ()
                if name in self.swap or name in copies:
                    raise errors.PlanError(
                        "added-up-swapped",
                        f"'{name}' is to be added up or to be a weight, and it is swapped. It would be another "
                        "record's number, and what the swap does to such sums is not known beforehand.",
                        "Add up held or match columns only.",
                    )

    def _either_rate_or_rates(self) -> None:
        if self.rate is not None and self.rates:
            raise errors.plan_field(["rate, rates: write one rate for all records, or rates by rule, and not both"])
        if self.rate is None and not self.rates:
            raise errors.plan_field(["rate: Field required (or rates, by rule)"])
        if not self.rates:
            return
        if [rule.otherwise for rule in self.rates] != [False] * (len(self.rates) - 1) + [True]:
            raise errors.plan_field(["rates: the last rule, and no other, says otherwise = true"])
        for rule in self.rates:
            self._require_kept(rule)
        every = [rule.rate for rule in self.rates]
        if kept_share(min(every), max(every)) < _FEWEST_KEPT:
            raise errors.PlanError(
                "rates-too-far-apart",
                f"The rates {min(every)} and {max(every)} are too far apart: in a group of one record of each, "
                "exactly one would be selected more than 999 times in 1000, and a selection of one is drawn again.",
                "Raise the lowest rate or lower the highest.",
            )

    def _require_kept(self, rule: RateRule) -> None:
        """Raise if a rule looks at anything but match and held columns, of the records or of a linked table."""
        linked = {one.name: one for one in self.linked}
        if rule.table is not None and rule.table not in linked:
            raise errors.rate_by_unknown_table(rule.table, list(linked))
        rows = linked[rule.table] if rule.table is not None else None
        for column in rule.columns:
            if column in self.swap or (rows is not None and column in rows.copies):
                raise errors.PlanError(
                    "rate-by-swap",
                    f"A rule of rates looks at '{column}', which is swapped. Then no epsilon can be stated: who is "
                    "likely to move would tell what is protected. For example, take held values 0, 0, 1, 1 with swap "
                    "values 0, 1, 0, 1, and the rate 0.5 for records that are unique on both and 0.02 for the others: "
                    "the loss is 1.33 times the bound.",
                    "Let rules look at match and held columns only. Records that are at risk within a swapped area "
                    'can be reached by unique_on = "held", or by holding a coarser area that is not swapped.',
                )
            kept = self.hold == "rest" or column in (*self.match, *self.hold)
            kept = kept and column not in self.drop and column != self.id
            if rows is not None and column not in (*rows.drop, rows.link, rows.id):
                kept = kept or rows.hold == "rest" or column in rows.hold
            if not kept:
                raise errors.rate_by_unknown(column, rule.table)

    def _require_coarse_to_fine(self) -> None:
        """Raise unless every later round keeps what the first one keeps, and its movement follows from that."""
        matched, before = list(self.match), self.swap
        for number, later in enumerate(self.rounds, 2):
            one_role_each(MAIN, {"swap": list(later.swap), "match_also": list(later.match_also)})
            for column in later.swap:
                if column in matched:
                    raise errors.PlanError(
                        "round-swaps-match",
                        f"Round {number} swaps '{column}', on which an earlier round matches. The guarantee is that "
                        "of the first round, about files with the same counts by its match and held columns; a later "
                        f"round that moves '{column}' does not keep these counts, so that nobody could check the "
                        "release.",
                        f"Put the coarsest round first: swap '{column}' and all that lies within it in the first "
                        f"round, and list '{column}' in match_also of the later one. Nested rounds give the same law "
                        "in either order, and the guarantee is then that of the coarsest. To publish the results of "
                        "both rounds, make two releases with one ledger: their epsilons add.",
                    )
                if column not in before:
                    raise errors.PlanError(
                        "round-swaps-held",
                        f"Round {number} swaps '{column}', which the round before does not swap. The guarantee is "
                        "about files with the same counts by match and held columns; a round that moves a held column "
                        "does not keep these, so that nobody could check the release. For files that agree only on "
                        "what all rounds keep there is no guarantee in general.",
                        f"Swap '{column}' in the first round too, or leave it out of the later one. To publish the "
                        "results of two such rounds, make two releases with one ledger: their epsilons add.",
                    )
            for column in later.match_also:
                if column not in before:
                    raise errors.PlanError(
                        "round-matches-held",
                        f"Round {number} lists '{column}' in match_also, which the round before does not swap. If it "
                        "is held, how many records such a round changes depends on which held values are found where, "
                        "which is protected: the release could not state it.",
                        "List in match_also the columns that the round before swaps and this one does not. To match "
                        "on a held column, move it to match: then all rounds do.",
                    )
            for column in before:
                if column not in (*later.swap, *later.match_also):
                    raise errors.PlanError(
                        "round-leaves",
                        f"Round {number} neither swaps '{column}' nor matches on it, and the round before swaps it. "
                        "Values of columns that are swapped together would come apart, and their joint counts, which "
                        "the guarantee takes as given, would not be kept.",
                        f"Add '{column}' to match_also of that round, or to its swap.",
                    )
            matched, before = [*matched, *later.match_also], later.swap

    @property
    def swapped_again(self) -> tuple[str, ...]:
        """Swap variables that a later round exchanges once more; those of the first round alone are left out."""
        again = {name for later in self.rounds for name in later.swap}
        return tuple(name for name in self.swap if name in again)

    @property
    def rate_words(self) -> str:
        """The rate, or the rules, in words."""
        return str(self.rate) if self.rate is not None else "; ".join(rule.words for rule in self.rates)

    @property
    def every_rate(self) -> tuple[Fraction, ...]:
        """The rate, or those of the rules, in their order."""
        return (self.rate,) if self.rate is not None else tuple(rule.rate for rule in self.rates)

    def _require_flat(self) -> None:
        """Raise if a flat file is not planned as one: one linked table, without an input, tied by the record's id."""
        table = self.linked[0]
        if len(self.linked) > 1 or table.input != InputSection() or table.copies:
            raise errors.plan_field(["linked: a flat table is the only one, and has no input and no copies"])
        if table.link != self.id:
            raise errors.plan_field(["linked: the link of a flat table is the column that id names"])
        if self.hold == "rest" and table.hold == "rest":
            raise errors.plan_field(['linked: only one of the two parts of a flat file can hold the "rest"'])
        if table.name.lower() == "flat":
            raise errors.linked_name(table.name)
        one_role_each(
            MAIN,
            {
                "match": list(self.match),
                "swap": list(self.swap),
                "hold": [] if self.hold == "rest" else list(self.hold),
                "drop": list(self.drop),
                "hold of the linked table": [] if table.hold == "rest" else list(table.hold),
                "drop of the linked table": list(table.drop),
                "id of the linked table": [table.id] if table.id else [],
            },
        )

    @property
    def flat(self) -> LinkedTable | None:
        """The linked table whose rows are those of the main file, if there is one."""
        return next((table for table in self.linked if table.flat), None)

    @property
    def records(self) -> str:
        """What the rows are called in sentences: "household records", or plain "records"."""
        return "records" if self.unit == "record" else f"{self.unit} records"

    @classmethod
    def input_sections(cls, fields: Mapping[str, Any]) -> list[Any]:
        return [fields.get("input"), *(table.get("input") for table in dicts(fields.get("linked")))]

    @classmethod
    def from_toml(cls, path: str | Path, allow: Sequence[str] = ()) -> SwapPlan:
        """Read a plan file; relative paths in it are taken from its own folder. ``allow`` adds to the plan's."""
        fields = cls.fields_of(path)
        if allow:
            own = fields.get("allow", [])
            fields["allow"] = [*([own] if isinstance(own, str) else own), *allow]
        return cls(**fields)

    def published(self) -> dict[str, Any]:
        fields = super().published()
        for table in fields.get("linked", []):
            table.pop("input", None)
            table.pop("drop", None)
        return fields
