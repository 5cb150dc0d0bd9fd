"""The plan of a swap: the role of each column, the swap rate, and where these choices came from.

A plan has one ``rate``, or ``rates`` by rule (:class:`RateRule`), which may look at what a swap keeps and at nothing
else. The variables of the paper (section 3.2.1): ``match`` is V_Match, ``swap`` is V_Swap, ``hold`` is V_Hold without
V_Match. A plan names columns and public values only; nothing in it is read from the data. In a file it is TOML whose
numbers are read as decimals, so that 0.05 is 1/20 and not the nearest binary fraction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log10
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.releases.plans import MOST_NAMES, MOST_SECTIONS, InputSection, Names, Plan, Section, dicts
from stirred.swap.guarantee import kept_share

MAIN = "microdata"
"""What the main table is called in messages and in the release."""

_TAKEN = {MAIN, "tables", "saturated", "manifest", "certificate", "specification", "data_dictionary", "readme"}
"""Names of other things in a release folder."""
_ALLOWED = ("rate-zero-or-one", "few-change", "many-unchangeable")
"""Stops without a column that a plan may allow."""
_LARGEST_DENOMINATOR = 10**18
_MOST_RULES = 20
_SHOWN_VALUES = 12
_FEWEST_KEPT = Fraction(1, 1000)
"""A selection of exactly one record is drawn again; the chance of any other may not be below this."""


def exact_rate(written: object) -> Fraction:
    """A swap rate as an exact fraction.

    >>> from decimal import Decimal
    >>> exact_rate(0.05), exact_rate("1/20"), exact_rate(Decimal("0.050"))
    (Fraction(1, 20), Fraction(1, 20), Fraction(1, 20))
    """
    try:
        rate = as_fraction(written)
    except NOT_A_NUMBER:
        raise errors.rate_not_a_number(written) from None
    if not 0 <= rate <= 1:
        raise errors.rate_out_of_range(written)
    if rate.denominator > _LARGEST_DENOMINATOR:
        raise errors.rate_too_fine(int(rate.denominator.bit_length() * log10(2)) + 1)
    return rate


Rate = Annotated[Fraction, BeforeValidator(exact_rate), PlainSerializer(str, return_type=str)]
Held = Annotated[
    Literal["rest"] | tuple[str, ...],
    BeforeValidator(lambda given: (given,) if isinstance(given, str) and given != "rest" else given),
    Field(max_length=MOST_NAMES),
]


Values = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: _texts(given)),
    Field(min_length=1, max_length=MOST_NAMES),
]


def _texts(given: Any) -> Any:
    """Values as text, from one or several; whole numbers as they are written."""
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in several)


CountedOn = Annotated[
    Literal["held"] | Names,
    BeforeValidator(lambda given: (given,) if isinstance(given, str) and given != "held" else given),
]


class RateRule(Section):
    """One rule of ``rates``: which records it is for, and their rate. The first rule that fits a record decides.

    A rule looks at match and held values, and at how many records share them. A swap keeps both, so they tell nothing
    of what it protects. A rule that looked at swap values would void the guarantee and is an error.

    Parameters
    ----------
    rate
        The probability that such a record is selected, strictly between 0 and 1, taken exactly as written.
    where
        Values of match or held columns, as text: ``{"size": ["8", "9"]}``. With several columns, all must fit.
    unique_on
        ``"held"`` for records that no other record equals in all match and held values, linked rows included; or some
        match and held columns, counted over the whole file.
    at_most
        With ``unique_on`` or instead of it: at most so many records share the values, not just one.
    otherwise
        True in the last rule, which has no condition.

    Examples
    --------
    >>> RateRule(where={"size": [8, 9]}, rate=0.5).words
    "1/2 where 'size' is 8 or 9"
    >>> RateRule(unique_on="held", rate=0.5).words
    '1/2 for records that are unique on match and held values'
    """

    rate: Rate
    where: Mapping[str, Values] = Field(default_factory=dict, max_length=MOST_SECTIONS)
    unique_on: CountedOn | None = None
    at_most: int | None = Field(default=None, ge=1, lt=1 << 32)
    otherwise: bool = False

    @model_validator(mode="after")
    def _conditions(self) -> Self:
        if self.rate in (0, 1):
            raise errors.rule_rate_zero_or_one(self.rate)
        if self.unique_on == ():
            raise ValueError('unique_on is "held", or a list of match and held columns')
        if self.otherwise == bool(self.where or self.counts):
            raise ValueError("a rule has conditions (where, unique_on, at_most) or otherwise = true, and not both")
        return self

    @property
    def counts(self) -> bool:
        """Whether the rule looks at how many records share values."""
        return self.unique_on is not None or self.at_most is not None

    @property
    def counted(self) -> tuple[str, ...] | None:
        """The columns whose values are counted; None for all match and held values, linked rows included."""
        return self.unique_on if isinstance(self.unique_on, tuple) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names."""
        return (*self.where, *(self.counted or ()))

    @property
    def condition(self) -> str:
        """The rule's condition in words."""
        said = [f"where '{name}' is {_either(values)}" for name, values in self.where.items()]
        if self.counts:
            on = "match and held values" if self.counted is None else errors.listed(self.counted)
            said.append(
                f"for records that are unique on {on}"
                if (self.at_most or 1) == 1
                else f"for records whose {on} at most {self.at_most} records share"
            )
        return " and ".join(said) or "otherwise"

    @property
    def words(self) -> str:
        """The rule in words."""
        return f"{self.rate} {self.condition}"


def _either(values: Sequence[str]) -> str:
    if len(values) > _SHOWN_VALUES:
        return f"one of {len(values)} values of the plan"
    return " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)


class Coarsening(Section):
    """A rule that merges values of a match column where few records have them, so that small groups move too.

    It looks at how many records have which match values and at nothing else. The column itself is then held: its own
    counts by swap variables are not kept any more, those of the merged values are.

    Parameters
    ----------
    column
        The match column whose values are merged.
    merge
        Lists of its values, as text, in the order in which they are merged. A later list contains an earlier one or
        has no value in common with it.
    at_least
        Among records that agree on all other match columns: if a group inside a list has fewer records than this,
        the whole list becomes one group.

    Examples
    --------
    >>> Coarsening(column="size", merge=[[9, 10], [8, 9, 10]], at_least=5).words
    "'size' is merged to 9 or 10, then to 8, 9 or 10, where a group has fewer than 5 records"
    """

    column: str
    merge: tuple[Values, ...] = Field(min_length=1, max_length=MOST_SECTIONS)
    at_least: int = Field(ge=2, lt=1 << 32)

    @model_validator(mode="after")
    def _nested(self) -> Self:
        for number, later in enumerate(self.merge):
            if len(set(later)) < max(2, len(later)):
                raise ValueError("each list of merge has at least two values, and none twice")
            for earlier in self.merge[:number]:
                if set(earlier) & set(later) and not set(earlier) <= set(later):
                    raise ValueError("a later list of merge contains an earlier one, or has no value in common with it")
        return self

    @property
    def words(self) -> str:
        """The rule in words."""
        lists = ", then to ".join(_either(values) for values in self.merge[:_SHOWN_VALUES])
        more = f" and {len(self.merge) - _SHOWN_VALUES} lists more" if len(self.merge) > _SHOWN_VALUES else ""
        return f"'{self.column}' is merged to {lists}{more}, where a group has fewer than {self.at_least} records"


class LinkedTable(Section):
    """A table whose rows belong to records of the main one, as persons belong to households.

    Its rows stay with their record. Columns that carry a swap variable's name, and those in ``copies``, are copies:
    they must agree with the record and are rewritten with it.

    Parameters
    ----------
    name
        What the table is called in messages and in the release.
    link
        The column with the id of the record that a row belongs to.
    id
        The column that identifies a row, drawn anew in the release.
    hold, drop
        Columns that are released as they are, and columns that are not released; ``hold="rest"`` holds all others.
    nulls
        Columns that may have nulls.
    copies
        Columns that repeat a swap variable of the record under another name.
    flat
        Whether its rows are those of the main file, in which the columns of the record are repeated: a flat file.
    input
        Where the table is and how to read it.

    Examples
    --------
    >>> LinkedTable(name="persons", link="household", hold=["age", "sex"]).hold
    ('age', 'sex')
    """

    name: str
    link: str
    """The column holding the id of the record a row belongs to."""
    id: str | None = None
    hold: Held = ()
    drop: Names = ()
    nulls: Names = ()
    copies: Mapping[str, str] = Field(default_factory=dict)
    flat: bool = False
    input: InputSection = Field(default_factory=InputSection)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", self.name) or self.name.lower() in _TAKEN:
            raise errors.linked_name(self.name)
        roles = {"link": [self.link], "id": [self.id] if self.id else [], "drop": list(self.drop)}
        roles["hold"] = [] if self.hold == "rest" else list(self.hold)
        roles["copies"] = list(self.copies)
        _one_role_each(self.name, roles)
        return self


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
    unit
        What one row is, in words: ``"household"``.
    dataset, chosen_from, format, licence, released_by
        The dataset's name in a ledger; where the choices came from; the format of released files; the licence of the
        data and who releases them, for README and certificate.
    drop, id, nulls
        Columns that are not released; the column that identifies a record, drawn anew; columns that may have nulls.
    linked
        Tables whose rows belong to records, as :class:`LinkedTable`.
    publish, saturated
        Tables to write beside the microdata, each by its columns; whether to write all combinations too.
    most_unchangeable
        The share of records that may lie in groups in which nothing can change; above it a release stops.
    most_told
        The share of records whose swap values held columns may predict beyond the match variables; above it a release
        stops.
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
    nulls: Names = ()
    linked: tuple[LinkedTable, ...] = Field(default=(), max_length=MOST_SECTIONS)
    publish: tuple[Names, ...] = Field(default=(), max_length=MOST_SECTIONS)
    """Tables to be written beside the microdata, each by its columns."""
    saturated: bool = False
    """Whether to write also the counts of all combinations of values."""
    most_unchangeable: Rate = Fraction(1, 4)
    """The largest share of records that may lie in strata where nothing can change."""
    most_told: Rate = Fraction(1, 2)
    """The largest share of records whose swap values held columns may tell."""
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
        _one_role_each(MAIN, roles)
        for name in self.allow:
            if name not in _ALLOWED and not name.startswith(("determines:", "distinct:", "tells:", "changes-text:")):
                raise errors.unknown_allowance(name)
        self._either_rate_or_rates()
        if self.coarsen is not None and self.coarsen.column not in self.match:
            raise errors.coarsen_not_match(self.coarsen.column, self.coarsen.column in self.swap)
        if self.rate in (0, 1) and "rate-zero-or-one" not in self.allow:
            raise errors.rate_zero_or_one(self.rate)
        for by in self.publish:
            if not by or len(set(by)) < len(by):
                raise errors.plan_field(["publish: each lists at least one column, and none twice"])
        if self.linked and not self.id:
            raise errors.linked_needs_id()
        if any(table.flat for table in self.linked):
            self._require_flat()
        names = [table.name for table in self.linked]
        for name in names:
            if names.count(name) > 1:
                raise errors.linked_name(name)
        for table in self.linked:
            for column, target in table.copies.items():
                if target not in self.swap:
                    raise errors.unknown_copy(table.name, column, target)
            for column in () if table.hold == "rest" else table.hold:
                if column in self.swap:
                    raise errors.two_roles(table.name, column, "hold", "the swap variables it would copy")
        return self

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
            for column in rule.columns:
                if column in self.swap:
                    raise errors.rate_by_swap(column)
                released = column not in self.drop and column != self.id
                if not released or (self.hold != "rest" and column not in (*self.match, *self.hold)):
                    raise errors.rate_by_unknown(column)
        every = [rule.rate for rule in self.rates]
        if kept_share(min(every), max(every)) < _FEWEST_KEPT:
            raise errors.rates_too_far_apart(min(every), max(every))

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
        _one_role_each(
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


def _one_role_each(table: str, roles: Mapping[str, list[str]]) -> None:
    seen: dict[str, str] = {}
    for role, columns in roles.items():
        for column in columns:
            if column in seen:
                raise errors.two_roles(table, column, seen[column], role)
            seen[column] = role


def table_names(tables: Sequence[Sequence[str]]) -> list[str]:
    """A file name for each table, from its columns; numbered where two would be the same."""
    names: list[str] = []
    for by in tables:
        name = "-by-".join(re.sub(r"[^A-Za-z0-9_]+", "_", column) for column in by)[:100]
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names
