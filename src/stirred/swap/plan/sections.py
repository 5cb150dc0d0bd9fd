"""Parts of the plan of a swap: rates and their rules, merged values, rounds, linked tables, tables to publish."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log10
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, PlainSerializer, Tag, ValidationError, model_validator

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.releases.plans import MOST_NAMES, MOST_SECTIONS, InputSection, Names, Section, field_problems

MAIN = "microdata"
"""What the main table is called in messages and in the release."""

_TAKEN = {MAIN, "tables", "saturated", "manifest", "certificate", "specification", "data_dictionary", "readme"}
"""Names of other things in a release folder."""
_LARGEST_DENOMINATOR = 10**18
_SHOWN_VALUES = 12


def exact_rate(written: object) -> Fraction:
    """A swap rate as an exact fraction.

    >>> from decimal import Decimal
    >>> exact_rate(0.05), exact_rate("1/20"), exact_rate(Decimal("0.050"))
    (Fraction(1, 20), Fraction(1, 20), Fraction(1, 20))
    """
    return _exact(written)


def _exact(written: object, field: str | None = None) -> Fraction:
    """A number from 0 to 1 as an exact fraction; ``field`` is its name in errors, where it is no swap rate."""
    try:
        found = as_fraction(written)
    except NOT_A_NUMBER:
        raise errors.rate_not_a_number(written, field) from None
    if not 0 <= found <= 1:
        raise errors.rate_out_of_range(written, field)
    if found.denominator > _LARGEST_DENOMINATOR:
        raise errors.rate_too_fine(int(found.denominator.bit_length() * log10(2)) + 1, field)
    return found


Rate = Annotated[Fraction, BeforeValidator(exact_rate), PlainSerializer(str, return_type=str)]
Share = Annotated[
    Fraction,
    BeforeValidator(lambda written, info: _exact(written, info.field_name)),
    PlainSerializer(str, return_type=str),
]
"""A share of the records, called by the name of its field in errors."""
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

    A rule looks at match and held values, those of linked rows included, and at how many records or rows share them. A
    swap keeps both, so they tell nothing of what it protects. A rule that looked at swap values would void the
    guarantee and is an error.

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
    table
        A linked table whose rows are looked at in place of records: the rule fits a record that has a row which meets
        all conditions. ``where`` and ``unique_on`` then name held columns of this table, and match and held columns of
        the record beside them; rows that share values are counted over the whole table.
    otherwise
        True in the last rule, which has no condition.

    Examples
    --------
    >>> RateRule(where={"size": [8, 9]}, rate=0.5).words
    "1/2 where 'size' is 8 or 9"
    >>> RateRule(unique_on="held", rate=0.5).words
    '1/2 for records that are unique on match and held values'
    >>> RateRule(table="persons", unique_on=["age", "sex"], rate=0.5).words
    "1/2 for records with a row of persons that is unique on 'age' and 'sex'"
    """

    rate: Rate
    where: Mapping[str, Values] = Field(default_factory=dict, max_length=MOST_SECTIONS)
    unique_on: CountedOn | None = None
    at_most: int | None = Field(default=None, ge=1, lt=1 << 32)
    otherwise: bool = False
    table: str | None = None

    @model_validator(mode="after")
    def _conditions(self) -> Self:
        if self.rate in (0, 1):
            raise errors.PlanError(
                "rule-rate-zero-or-one",
                f"A rule gives records the rate {self.rate}. A record that surely moves, or surely stays, has no "
                "epsilon.",
                "Choose a rate strictly between 0 and 1, such as 0.99. Records that must stay as they are belong in a "
                "file of their own that is not swapped.",
            )
        if self.unique_on == ():
            raise ValueError('unique_on is "held", or a list of match and held columns')
        if self.otherwise == bool(self.where or self.counts):
            raise ValueError("a rule has conditions (where, unique_on, at_most) or otherwise = true, and not both")
        if self.table is not None and (self.otherwise or (self.counts and self.counted is None)):
            raise ValueError("a rule with a table has where, or unique_on with a list of columns")
        return self

    @property
    def counts(self) -> bool:
        """Whether the rule looks at how many records, or rows of a linked table, share values."""
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
        where, unique, whose, others = "where", "for records that are", "for records whose", "records"
        if self.table is not None:
            where, unique, whose, others = "in which", "that is", "whose", f"rows of {self.table}"
        said = [f"{where} '{name}' is {_either(values)}" for name, values in self.where.items()]
        if self.counts:
            on = "match and held values" if self.counted is None else errors.listed(self.counted)
            alone = (self.at_most or 1) == 1
            said.append(f"{unique} unique on {on}" if alone else f"{whose} {on} at most {self.at_most} {others} share")
        words = " and ".join(said) or "otherwise"
        return words if self.table is None else f"for records with a row of {self.table} {words}"

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


class Round(Section):
    """One later round of a swap: it swaps some columns once more, among records that also agree on others.

    It works on what the round before gave and on nothing else, so it adds nothing to epsilon. Rounds go from coarse to
    fine: a round swaps columns that the round before swaps, and matches on the rest of them.

    Parameters
    ----------
    swap
        The columns whose values are exchanged once more.
    match_also
        The columns on which records must agree beside those of the round before: all that it swaps and this does not.
    rate
        The probability that a record is selected in this round, strictly between 0 and 1, taken exactly as written.

    Examples
    --------
    >>> Round(swap=["municipality"], match_also=["county"], rate="1/10").words
    "'municipality' at rate 1/10 among records that also agree on 'county'"
    """

    swap: Names = Field(min_length=1)
    match_also: Names = ()
    rate: Rate

    @model_validator(mode="before")
    @classmethod
    def _one_rate(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and "rates" in given:
            raise ValueError("a later round has one rate for all records; rates by rule are for the first round")
        return given

    @model_validator(mode="after")
    def _moves_some(self) -> Self:
        if self.rate in (0, 1):
            raise ValueError("the rate of a later round is strictly between 0 and 1")
        return self

    @property
    def words(self) -> str:
        """The round in words."""
        among = f" among records that also agree on {errors.listed(self.match_also)}" if self.match_also else " again"
        return f"{errors.listed(self.swap)} at rate {self.rate}{among}"


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
        one_role_each(self.name, roles)
        return self


class PublishedTable(Section):
    """A table that is published or forecast: what is counted or added up, and by which columns.

    Counts of records need their columns only, and may be written as a plain list of them.

    Parameters
    ----------
    by
        The columns of the table. With ``table``, columns of the linked table and of the record its rows belong to;
        where both have a column of that name, the linked table's.
    table
        The linked table whose rows are counted; by default records of the main table.
    sum
        A numeric column whose values are added up in each cell.
    weight
        A numeric column: every row counts as often as it says. With ``sum``, values are multiplied by it.

    Examples
    --------
    >>> PublishedTable(table="persons", by=["county", "sex"]).words
    "Table of persons by 'county' and 'sex'"
    >>> PublishedTable(by=["county"], sum="income", weight="w").words
    "Table by 'county', sum of 'income' weighted by 'w'"
    """

    by: Names
    table: str | None = None
    sum: str | None = None
    weight: str | None = None

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if not self.by or len(set(self.by)) < len(self.by):
            raise errors.plan_field(["publish: each lists at least one column, and none twice"])
        return self

    @classmethod
    def of(cls, given: Sequence[str] | Mapping[str, Any] | PublishedTable) -> PublishedTable:
        """The table meant by a list of columns, by the fields of a table, or by a table itself."""
        if isinstance(given, PublishedTable):
            return given
        if isinstance(given, Mapping):
            try:
                return cls(**given)
            except ValidationError as problem:
                raise errors.plan_field([f"table: {one}" for one in field_problems(cls, problem)]) from None
        return cls(by=(given,) if isinstance(given, str) else tuple(given))

    @property
    def of_records(self) -> bool:
        """Whether records of the main table are counted, each once."""
        return self.linked is None and not self.adds_up

    @property
    def linked(self) -> str | None:
        """The linked table whose rows are counted; None for records."""
        return None if self.table == MAIN else self.table

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that are added up or multiplied by."""
        return tuple(name for name in (self.sum, self.weight) if name is not None)

    @property
    def adds_up(self) -> bool:
        """Whether numbers of the data are added up, and not just rows counted."""
        return bool(self.added)

    @property
    def label(self) -> str:
        """What the numbers of the table are called in its heading."""
        if not self.adds_up:
            return "count"
        weighted = "weighted_" if self.weight else ""
        return f"{weighted}sum_of_{self.sum}" if self.sum else "weighted_count"

    @property
    def words(self) -> str:
        """The table in words."""
        of = f" of {self.linked}" if self.linked else ""
        weighted = f" weighted by '{self.weight}'" if self.weight else ""
        what = f", sum of '{self.sum}'{weighted}" if self.sum else f", counts{weighted}" if weighted else ""
        return f"Table{of} by {errors.listed(self.by)}{what}"

    def to_fields(self) -> dict[str, Any]:
        """The table as JSON states it."""
        return self.model_dump(mode="json", exclude_defaults=True)


Published = Annotated[
    Annotated[Names, Tag("columns")] | Annotated[PublishedTable, Tag("table")],
    Discriminator(lambda given: "table" if isinstance(given, Mapping | PublishedTable) else "columns"),
]


def one_role_each(table: str, roles: Mapping[str, list[str]]) -> None:
    """Raise if a column has two roles."""
    seen: dict[str, str] = {}
    for role, columns in roles.items():
        for column in columns:
            if column in seen:
                raise errors.two_roles(table, column, seen[column], role)
            seen[column] = role


def table_names(tables: Sequence[PublishedTable]) -> list[str]:
    """A file name for each table, from what it counts or adds up; numbered where two would be the same."""
    names: list[str] = []
    for table in tables:
        name = "-by-".join(_in_a_file_name(column) for column in table.by)[:100]
        name += f"-of-{table.linked}"[:60] if table.linked else ""
        name += f"-sum-of-{_in_a_file_name(table.sum)}"[:60] if table.sum else ""
        name += f"-weighted-by-{_in_a_file_name(table.weight)}"[:60] if table.weight else ""
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _in_a_file_name(column: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", column)
