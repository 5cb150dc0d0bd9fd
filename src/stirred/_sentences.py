"""Sentences for readers of a release, kept as data in the folder ``sentences``: all that a translator would take.

``releases.toml`` has those of README.txt and of the notes for analysts, a section for each mechanism and one for all
of them; explanations, findings, limits of learning, the glossary, the context of a release, and what is said of the
settings and imputation of a survey have files of their own. Which sentence is said, and which facts stand in it, is
decided by the code that asks for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_sentences(name: str) -> dict[str, Any]:
    """The fields of a file of sentences, by its name without the ending."""
    return tomllib.loads((files("stirred") / "sentences" / f"{name}.toml").read_text(encoding="utf-8"))


def sentences_of(section: str) -> Callable[..., str]:
    """The function that says the sentences of a section of ``releases.toml``, by their names and with their facts.

    >>> sentences_of("survey")("condition_unknown", unit="household", times="twice the stated epsilon")[:44]
    'Whether each row of the file is one whole ho'
    """

    def say(name: str, /, **facts: object) -> str:
        words: str = read_sentences("releases")[section][name]
        return words.format(**facts)

    return say
