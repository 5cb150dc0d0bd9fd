"""``stirred responses``: the share behind randomised responses, and what one answer tells."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def responses(
    yes: Annotated[int, typer.Option(help="How many answers are yes.")],
    answers: Annotated[int, typer.Option(help="The number of all answers.")],
    keep: Annotated[str, typer.Option(help="The probability that an answer is the true one, such as 0.6 or 3/5.")],
    prior: Annotated[
        list[str] | None,
        typer.Option(help="What is believed before about one person's yes (default 0.01, 0.1, 0.5). Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate a share from randomised responses, and print what one answer tells about the person who gave it."""
    from stirred.semantics.response_summary import PRIORS, summarise_responses

    found = summarise_responses(yes, answers, keep, prior or PRIORS)
    sys.stdout.write(found.to_json() if as_json else found.text())
