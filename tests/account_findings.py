"""What all accounts of known deployments together show, as docs/deployments.md has it: how many leave which block open,
and how facts were checked."""

from __future__ import annotations

from collections import Counter

from stirred.spec.known_deployments.accounts import BLOCKS, CHECKED, RECORD, UNREACHED, Account, accounts


def counts() -> dict[str, int]:
    """Numbers of deployments and facts, by what they are counts of."""
    all_of_them = list(accounts().values())
    taken_in = [one for one in all_of_them if is_taken_in(one)]
    facts = [(name, fact) for one in taken_in for name, fact in one.facts.items()]
    marks = Counter(fact.mark for _, fact in facts)
    of_blocks = Counter(fact.mark for name, fact in facts if name in BLOCKS)
    panels = Counter(one.panel for one in all_of_them if one.panel is not None)
    return {
        "deployments": len(all_of_them),
        "complete": sum(one.complete for one in all_of_them),
        **{f"not stated: {name}": sum(name in one.not_stated for one in all_of_them) for name in BLOCKS},
        "budgets": sum(bool(one.numbers) for one in all_of_them),
        "on an axis": sum(panels.values()),
        "axes": len(panels),
        "axes with one": sum(number == 1 for number in panels.values()),
        "taken in": len(taken_in),
        "facts": len(facts),
        **{mark: marks[mark] for mark in (CHECKED, RECORD, UNREACHED)},
        "facts of blocks": sum(of_blocks.values()),
        "checked of blocks": of_blocks[CHECKED],
        "budgets taken in": sum(bool(one.numbers) for one in taken_in),
        "checked budgets": sum(name == "budget" and fact.mark == CHECKED for name, fact in facts),
        "with differences": sum(bool(one.errata) for one in taken_in),
    }


def is_taken_in(one: Account) -> bool:
    """Whether the deployment was taken in from a record of the public registry; the 2020 Census was not."""
    return any(source.startswith("Deployments registry, record") for source in one.sources)


def sentences() -> list[str]:
    """The findings in plain words."""
    found = counts()
    whole, complete = found["deployments"], found["complete"]
    said = [
        f"Of {whole} deployments every building block of the guarantee is stated for {complete}; for "
        f"{whole - complete} at least one is open."
    ]
    said += [
        f"For {found[f'not stated: {name}']} it is not stated: {words}."
        for name, words in sorted(BLOCKS.items(), key=lambda one: -found[f"not stated: {one[0]}"])
    ]
    said += [
        f"For {found['budgets']} a budget is stated, for {found['on an axis']} of these also standard, unit and period."
        f" They need {found['axes']} axes, and {found['axes with one']} of these axes have one deployment only.",
        f"For the {found['taken in']} that were taken in from the registry there are {found['facts']} facts: "
        f"{found[CHECKED]} were checked in a source that is named; {found[RECORD]} are as the registry's record tells, "
        "and were not seen in what could be read of its sources; for "
        f"{found[UNREACHED]} the source could not be reached.",
        f"Of their {found['facts of blocks']} facts about building blocks {found['checked of blocks']} were checked, "
        f"of their {found['budgets taken in']} budgets {found['checked budgets']}.",
        f"For {found['with differences']} of the {found['taken in']} the record, its sources, or two sources differ.",
    ]
    return said


def table() -> str:
    """All deployments as a table in Markdown."""
    lines = [
        "| name | who | year | unit | standard | budget | not stated |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in accounts().values():
        says = {name: fact.says for name, fact in one.facts.items()}
        open_ones = ", ".join(name for name in BLOCKS if name in one.not_stated) or "-"
        cells = (
            f"`{one.name}`",
            says["organisation"],
            str(one.year),
            says.get("unit", "not stated"),
            says.get("standard", "not stated"),
            one.guarantee(),
            open_ones,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def differences() -> str:
    """Where records and sources differ, as a table in Markdown: what is printed, and what is used here.

    The 2020 Census is left out: ``stirred deployments`` shows its errata with each of its products.
    """
    lines = ["| name | printed | used here |", "| --- | --- | --- |"]
    for one in accounts().values():
        errata = one.errata if is_taken_in(one) else ()
        lines += [f"| `{one.name}` | {erratum.printed} | {erratum.correct} |" for erratum in errata]
    return "\n".join(lines) + "\n"
