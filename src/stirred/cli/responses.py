"""``stirred responses``: the share behind randomised responses, and what one answer tells."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def responses(
    yes: Annotated[int, typer.Option(help="The number of answers that are yes.")],
    answers: Annotated[int, typer.Option(help="The number of all answers, yes and no.")],
    keep: Annotated[
        str,
        typer.Option(
            help="The probability with which a person gives the true answer, rather than the opposite: 0.6 or 3/5."
        ),
    ],
    prior: Annotated[
        list[str] | None,
        typer.Option(
            help="The probability, before the answer is seen, that the person's true answer is yes. Default: 0.01, 0.1 "
            "and 0.5. Repeatable."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Estimate a share from randomised responses, and print what one answer reveals about the person who gave it."""
    from stirred.semantics.randomised_response import PRIORS, summarise_responses

    found = summarise_responses(yes, answers, keep, prior or PRIORS)
    sys.stdout.write(found.to_json() if as_json else found.text())
