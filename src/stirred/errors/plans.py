"""Errors about what was asked, whatever the data: plans, targets to calibrate for, arguments and options."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import ArgumentError, DataError, PlanError, StirredError, listed, one_line


def plan_mechanism(found: object, known: Sequence[str]) -> PlanError:
    asked = "names no mechanism" if found is None else f"asks for the mechanism {found!r}"
    return PlanError(
        "plan-mechanism",
        f"The plan {asked}.",
        "Write " + " or ".join(f'mechanism = "{name}"' for name in known) + ".",
    )


def not_offered(mechanism: str, what: str) -> PlanError:
    return PlanError(
        "not-offered",
        f"The mechanism {mechanism!r} does not offer {what}.",
        "stirred --help lists the commands.",
    )


def option_not_for(option: str, mechanism: str, offered: Sequence[str] = (), instead: str = "") -> PlanError:
    """``offered`` are the options that the mechanism has for the command, ``instead`` is what to give in place."""
    others = f"; for {mechanism!r} this command has {', '.join(offered)}" if offered else ""
    return PlanError(
        "option-not-for",
        f"The option {option} does not apply to the mechanism {mechanism!r}.",
        f"{instead} Leave it out{others}.".strip(),
    )


def nothing_to_draw(
    why: str = "figures of a check compare at least two choices of variables or rates",
    remedy: str = "Add --candidate or several --rates, where the mechanism has them, or leave --figures out.",
) -> PlanError:
    return PlanError("nothing-to-draw", f"There is nothing to draw: {why}.", remedy)


def plan_field(problems: Sequence[str], page: str = "plans") -> PlanError:
    """``page``: the page of the documentation that has the fields."""
    return PlanError(
        "plan-field",
        "The plan has fields that cannot be used: " + "; ".join(problems) + ".",
        f"See docs/{page}.md for the fields of a plan (stirred docs {page}).",
    )


def two_roles(table: str, column: str, first: str, second: str) -> PlanError:
    return PlanError(
        "two-roles",
        f"In table '{table}' the column '{column}' is listed under {first} and again under {second}.",
        "Give every column exactly one role.",
    )


def empty_role(role: str) -> PlanError:
    return PlanError(
        f"empty-{role}",
        f"The plan lists no {role} variables.",
        "Swapping needs at least one variable that moves (swap) and one that stays (hold).",
    )


def rate_not_a_number(found: object, field: str | None = None) -> PlanError:
    """``field``: the field of the plan, where it is a share of the records and not the swap rate."""
    return PlanError(
        "rate-not-a-number",
        f"{f'{field} =' if field else 'The swap rate'} {found!r} is not a number.",
        'Write a decimal such as 0.05, or a fraction in quotes such as "1/20".',
    )


def rate_out_of_range(found: object, field: str | None = None) -> PlanError:
    return PlanError(
        "rate-out-of-range",
        f"{f'{field} =' if field else 'The swap rate'} {found} lies outside 0 to 1.",
        f"It is a {'share' if field else 'probability'}: write 0.05 for five per cent.",
    )


def rate_too_fine(digits: int, field: str | None = None) -> PlanError:
    return PlanError(
        "rate-too-fine",
        f"The denominator of {field or 'the swap rate'} has {digits} digits; at most 18 can be handled exactly.",
        "Round it." if field else "Round the rate; the guarantee is then computed from the rounded rate.",
    )


def rate_by_unknown(column: str, table: str | None = None) -> PlanError:
    also = f", nor a held column of table '{table}'" if table is not None else ""
    return PlanError(
        "rate-by-unknown",
        f"A rule of rates looks at '{column}', which is no match or held column of the main table{also}.",
        "Rules look at match and held columns, so that a recipient can compute every rate again from the release. "
        'A rule that looks at rows of a linked table names it: table = "persons".',
    )


def rate_by_unknown_table(name: str, known: Sequence[str]) -> PlanError:
    there = f"The linked tables are {listed(known)}" if known else "The plan has no linked table"
    return PlanError(
        "rate-by-unknown-table",
        f"A rule of rates looks at rows of '{name}', and the plan has no linked table of that name.",
        f"{there}; leave out table to look at records of the main table.",
    )


def coarsen_not_match(column: str, swapped: bool) -> PlanError:
    return PlanError(
        "coarsen-not-match",
        f"coarsen names '{column}', which is no match column"
        + (" but a swapped one: merging by what is swapped has no finite epsilon." if swapped else "."),
        "Name one of the match columns, whose values are merged where groups are small.",
    )


def linked_name(name: str) -> PlanError:
    return PlanError(
        "linked-name",
        f"'{name}' cannot name a linked table.",
        "Use letters, digits, - and _; each table needs a name of its own, and 'microdata' is taken.",
    )


def table_columns(
    names: Sequence[str],
    known: Sequence[str],
    table: str | None = None,
    elsewhere: Sequence[str] = (),
    asked: str = "by",
) -> PlanError:
    where = "main table" if table is None else f"table '{table}' and the columns of its records"
    hint = ""
    if elsewhere:
        hint = f" Linked rows are counted with table = {listed(elsewhere)} (--by 'COLUMNS;table={elsewhere[0]}')."
    if any(";" in name for name in names):
        hint += " After the columns and a semicolon stand table=NAME, sum=COLUMN or weight=COLUMN, each once."
    return PlanError(
        "table-column",
        f"A table is asked for {asked} {listed(names)}, which the released {where} will not contain.",
        f"Use some of {listed(known)}.{hint}",
    )


def published_of_unknown(name: str, known: Sequence[str]) -> PlanError:
    there = f"The linked tables are {listed(known)}" if known else "The plan has no linked table"
    return PlanError(
        "published-of-unknown",
        f"A table of '{name}' is asked for, and the plan has no linked table of that name.",
        f"{there}; leave out table to count records of the main table.",
    )


def added_up_text(name: str, kind: str) -> PlanError:
    return PlanError(
        "added-up-text",
        f"'{name}' is to be added up or to be a weight, and its type is {kind}, which is not a number.",
        f'If its cells are numbers in a CSV file, say so: types = {{{name} = "integer"}} or "number" under input.',
    )


def added_up_null(name: str) -> PlanError:
    return PlanError(
        "added-up-null",
        f"'{name}' is to be added up or to be a weight, and some of its cells are null, infinite or not a number. What "
        "they should count as is not known.",
        "Replace them in the file (by 0 if they shall not count), or leave this table out.",
    )


def unknown_allowance(name: str) -> PlanError:
    return PlanError(
        "unknown-allowance",
        f"There is no stop called '{name}' for this plan.",
        "The stops are determines:COLUMN, distinct:COLUMN and tells:COLUMN (or tells:COLUMN+COLUMN, "
        "tells:all-held-columns) for held columns, undone:COLUMN+COLUMN, undone-by-releases, changes-text:COLUMN, "
        "few-change, many-alone, many-unchangeable and rate-zero-or-one.",
    )


def bad_candidate(text: str) -> PlanError:
    return PlanError(
        "bad-candidate",
        f"The candidate {text!r} cannot be read.",
        "Write it as 'match=state,size;swap=county'; match may be left out.",
    )


def bad_pair(text: str, why: str) -> PlanError:
    return PlanError(
        "bad-pair",
        f"The pair {text!r} cannot be looked at: {why}.",
        "Write it as 'size=2,county=A,tenure=own;county=B,tenure=rent': match and swap columns of both records, "
        "and held columns to look at the records as they stand among others who share these values.",
    )


def seeded_release() -> PlanError:
    return PlanError(
        "seeded-release",
        "This was drawn from a seeded random source, which is for tests: it is not for release.",
        "Draw without source=, or pass for_tests=True to write it for a test.",
    )


def margin_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "margin-plan",
        f"In a plan this must hold: {what} {must}.",
        "Correct the plan's attributes, recodes or margins.",
    )


def nested_levels(level: str, problem: str) -> DataError:
    return DataError("topdown-geography", f"The level '{level}' {problem}.", "Correct the list of geounits.")


def not_nested(level: str, unit: str, above: str, both: Sequence[str]) -> DataError:
    unit, first, second = (one_line(name, 60) for name in (unit, *both))
    return DataError(
        "topdown-geography",
        f"The levels '{above}' and '{level}' are not nested: {level} {unit} lies in two units of level '{above}', "
        f"{first} and {second}.",
        "Correct the list of geounits.",
    )


def measured_margin(what: str, must: str) -> StirredError:
    return StirredError("measured-margin", f"{what} {must}.", "Correct the list of measured margins.")


def shares_question(what: str, must: str) -> StirredError:
    return StirredError(
        "shares-question", f"{what} {must}.", "Change the shares or the queries that they are asked for."
    )


_PAGE = "docs/calibrate.md has examples (stirred docs calibrate)."


def bad_target(text: str, problem: str) -> PlanError:
    return PlanError("bad-target", f"The target {one_line(text, 200)!r} cannot be read: {problem}.", _PAGE)


def no_targets() -> PlanError:
    return PlanError(
        "no-targets",
        "No limit was given to calibrate for.",
        "Give at least one --target, such as 'power at 5% <= 20%' or 'error of total at county <= 5'. " + _PAGE,
    )


def target_not_for(text: str, what: str, instead: str) -> PlanError:
    """``what`` names what was to be calibrated, ``instead`` says what can be asked of it."""
    return PlanError(
        "target-not-for", f"The target {one_line(text, 200)!r} cannot be asked of {what}.", f"{instead} {_PAGE}"
    )


def target_not_measured(text: str, table: str) -> PlanError:
    return PlanError(
        "target-not-measured",
        f"The target {one_line(text, 200)!r} can never be met: no query that the plan measures for '{table}' tells "
        "what it asks for.",
        "Add a query to the plan that has these attributes, with a share at that level or below it.",
    )


def out_of_reach(text: str, why: str, remedy: str) -> PlanError:
    return PlanError("target-out-of-reach", f"The target {one_line(text, 200)!r} cannot be met: {why}.", remedy)


def targets_disagree(why: str, remedy: str) -> PlanError:
    return PlanError("targets-disagree", f"The targets cannot be met together: {why}.", remedy)


def calibration_option(option: str, must: str) -> PlanError:
    return PlanError("calibration-option", f"The option {option} {must}.", _PAGE)


def moved_to_calibrate(option: str, target: str) -> PlanError:
    """An option of another command that ``stirred calibrate`` has taken over."""
    return PlanError(
        "moved-to-calibrate",
        f"{option} is no option of this command any more: stirred calibrate answers it.",
        f"Type: stirred calibrate PLAN --target {target!r}. " + _PAGE,
    )


# -- arguments and options ------------------------------------------------------------------------------------------

_KINDS = {
    "NoneType": "None",
    "str": "a text",
    "bytes": "bytes",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "Fraction": "a fraction",
    "list": "a list",
    "tuple": "a tuple",
    "set": "a set",
    "dict": "a dict",
    "ndarray": "an array",
    "function": "a function",
    "PosixPath": "a path",
    "WindowsPath": "a path",
}


def wrong_argument(what: str, given: object, wanted: str) -> ArgumentError:
    return ArgumentError("wrong-argument", f"{what} cannot be {kind_of(given)}.", f"Give {wanted}.")


def does_not_fit(function: str, problems: Sequence[str], form: str) -> ArgumentError:
    return ArgumentError("call-does-not-fit", f"{function}() {'; '.join(problems)}.", f"Call {function}{form}.")


def kind_of(given: object) -> str:
    """The type of an object in words; never its contents.

    >>> kind_of([1, 2]), kind_of(None), kind_of(3 + 4j)
    ('a list', 'None', "a 'complex'")
    """
    name = type(given).__name__
    return _KINDS.get(name, f"a '{name}'")
