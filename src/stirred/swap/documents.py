"""Writes what a swapped release says in words: README.txt, notes for analysts and beside the confidential comparison.

Keep in mind: everything follows from the plan and the names of columns; no table is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from shlex import quote

from stirred._sentences import sentences_of
from stirred.errors import listed
from stirred.releases.folder.documents import (
    ReleasedTable,
    context_section,
    files_section,
    fill,
    findings_section,
    guarantee_section,
    labelled_line,
    origin_section,
    titled,
)
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.spec import Specification, facts
from stirred.spec.exact import display
from stirred.swap.checking.putting_back import PUT_BACK, PutBack
from stirred.swap.data.dataset import FLAT, flat_labels
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import table_names
from stirred.tables.writing import EXTENSIONS

_NAMED = 12
"""Held columns that are named one by one."""

say = sentences_of("swap")


def readme(
    specification: Specification, plan: SwapPlan, tables: Sequence[ReleasedTable], put_back: PutBack | None
) -> str:
    """The text of ``README.txt``; ``put_back`` is None for releases of versions before 0.7, which did not state it."""
    published = [f"tables/{name}.csv" for name in table_names(plan.published_tables)]
    if plan.flat is not None:
        flat = FLAT + EXTENSIONS[tables[0].format]
        lines = [say("flat", file=flat, table=plan.flat.name, unit=plan.unit)]
        if (labels := flat_labels(tables)) is not None:
            lines.append(labelled_line(labels, FLAT, flat))
        published = [*lines, *published]
    parts = [
        titled(say("title", records=plan.records), specification),
        origin_section(plan),
        fill(" ".join(_what_was_done(plan, specification))) + "\n",
        files_section(tables, published),
        guarantee_section(specification),
        fill(_how_to_read(specification)) + "\n",
        fill(put_back.words(plan)) + "\n" if put_back is not None else "",
        analysts_section(plan, tables),
        findings_section(specification),
        context_section(plan.context),
        say("check_it"),
        fill(
            f"{say('new_order_and_ids' if plan.id else 'new_order')} "
            f"{say('moved_unknown' if put_back is None else 'moved_shown')}"
        )
        + "\n",
    ]
    return "\n".join(part for part in parts if part)


def analysts_section(plan: SwapPlan, tables: Sequence[ReleasedTable]) -> str:
    """Which tables are exact, which are weakened and which cannot be had; a function of the plan and the columns."""
    held = {table.name: [name for name, role in table.columns if role == "hold"] for table in tables}
    exact, weakened, missing = analysts_words(plan, held)
    lines = [say("exact", tables=exact), say("weakened", tables=weakened), say("missing", tables=missing)]
    return "\n".join([say("analysts"), *(fill(line, "  ") for line in lines)]) + "\n"


def analysts_words(plan: SwapPlan, held: Mapping[str, Sequence[str]]) -> tuple[str, str, str]:
    """Which tables are exact, which are weakened and which cannot be had; ``held`` has the held columns of each table,
    that of the records first."""
    main, *others = held.values()
    linked = dict(zip(list(held)[1:], others, strict=True))
    match = [*plan.match]
    merged = say("exact_merged", column=plan.coarsen.column) if plan.coarsen else ""
    exact = [say("exact_table", columns=listed([*match, *plan.swap])) + merged]
    if main:
        exact.append(say("exact_table", columns=listed([*match, *main])))
    exact += [
        say("exact_linked", table=name, columns=listed([*match, *main, *names])) for name, names in linked.items()
    ]
    every = list(dict.fromkeys([*main, *(name for names in linked.values() for name in names)]))
    other = every[0] if every else plan.swap[0]
    held_columns = f" ({listed(every)})" if len(every) <= _NAMED else ""
    weakened = [
        say("weakened_tables", swap=listed(plan.swap), held=held_columns),
        *_how_weakened(plan),
        say("biased"),
        _corrected(plan, other),
    ]
    return say("exact_parts", tables="; ".join(exact)), " ".join(weakened), say("missing_tables")


def _how_weakened(plan: SwapPlan) -> Iterator[str]:
    if not all(one.of_records for one in plan.published_tables):
        yield say("weakened_sums", swap=listed(plan.swap))
    if plan.rate is None:
        yield say("weakened_by_rules")
    else:
        yield say("weakened_by_rate", share=100 * float(1 - plan.rate))
    if plan.rounds:
        yield say("weakened_again", again=listed(plan.swapped_again))


def _corrected(plan: SwapPlan, other: str) -> str:
    """Which command corrects a weakened table, and for which tables none does."""
    said = say("corrected", columns=quote(f"{plan.swap[0]},{other}"))
    if plan.rounds or plan.rates:
        what = listed(plan.swapped_again) if plan.rounds else say("unequal_rates")
        return say("corrected_alone", corrected=said, what=what)
    return say("corrected_regressions", corrected=said)


def _what_was_done(plan: SwapPlan, specification: Specification) -> Iterator[str]:
    """Who was selected, what was exchanged in each round, and how many records are expected to change."""
    if plan.rate is not None:
        probability = say("probability", rate=plan.rate)
    else:
        probability = say("probabilities", rules=plan.rate_words)
    match = listed(plan.match) if plan.match else say("no_match")
    merged = f" ({plan.coarsen.words})" if plan.coarsen else ""
    swap = listed(plan.swap)
    yield say("selected", match=match, merged=merged, unit=plan.unit, probability=probability, swap=swap)
    for number, later in enumerate(plan.rounds, 2):
        also = say("round_also", match=listed(later.match_also)) if later.match_also else ""
        yield say("round", number=number, before=number - 1, also=also, rate=later.rate, swap=listed(later.swap))
    if plan.rounds:
        yield say("rounds")
    yield say("others_kept")
    stated = specification.fact
    if facts.CHANGED_SHARE in stated:  # not in a release of a version before 0.4
        changed, fixed = (100 * float(stated[name]) for name in (facts.CHANGED_SHARE, facts.UNCHANGEABLE_SHARE))
        averaged = say("changed_averaged") if facts.RATES in stated else ""
        yield say("changed", changed=changed, averaged=averaged, fixed=fixed)


def _how_to_read(specification: Specification) -> str:
    if specification.nearest == inf:
        return say("nothing_protected")
    return say("how_to_read", epsilon=display(specification.budget.number))


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, and what to type."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    held = {name: release.with_role(name, "hold") for name in release.dictionary}
    exact, weakened, missing = analysts_words(plan, held)
    yield AnalystNote("exact", exact)
    yield AnalystNote("corrected", weakened)
    yield AnalystNote("unusable", missing)
    if (changed := release.specification.fact.get(facts.CHANGED_SHARE)) is not None:
        yield AnalystNote("accuracy", say("accuracy", changed=100 * float(str(changed))))
    if (stated := PutBack.from_fields(release.certificate.get(PUT_BACK))) is not None:
        yield AnalystNote("put back", stated.words(plan))
    others = _others(plan, held)
    yield AnalystNote("command", f"stirred tabulate FOLDER --by {quote(','.join([*plan.match, *plan.swap]))}")
    if others:
        yield AnalystNote("command", f"stirred estimate FOLDER --by {quote(f'{plan.swap[0]},{others[0]}')}")


def _others(plan: SwapPlan, held: Mapping[str, Sequence[str]]) -> list[str]:
    """The held columns of the records, which are the first table."""
    return list(next(iter(held.values()), ()))
