"""The five sentences that an explanation begins with: few, easy to read, and about the right numbers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from test_explaining import CENSUS, EXAMPLES

from stirred.semantics import explain
from stirred.semantics.sentences.summary import everyday
from stirred.spec import Invariant, flavors
from stirred.spec.known_deployments.names import names
from stirred.spec.loading import load

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"


def reading_ease(text):
    """Flesch's reading ease; a syllable is a run of vowels, without an e at the end of a word."""
    sentences = max(1, len(re.findall(r"[.;:](?:\s|$)", text)))
    words = re.findall(r"[A-Za-z]+", text)
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", word.lower())))) for word in words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


explained = cache(explain)


def summary(specification):
    return explained(specification).section("summary")


def test_at_most_five_sentences_come_first():
    for specification in EXAMPLES.values():
        said = summary(specification)
        assert 1 <= len(said) <= 5 and explained(specification).statements[: len(said)] == said
        assert explained(specification).text().split("\n\n")[1].startswith("IN SHORT\n")


@pytest.mark.parametrize("name", names())
def test_every_known_deployment_has_a_summary(name):
    assert 3 <= len(summary(load(name))) <= 5


def test_reading_ease_is_as_the_documentation_says():
    page = PAGE.read_text(encoding="utf-8")
    told = re.search(r"is (\d+) for this one\s+and between (\d+) and (\d+) over", page)
    of_census, least, most = map(int, told.groups())
    eases = [reading_ease(" ".join(one.words for one in summary(each))) for each in EXAMPLES.values()]
    assert round(reading_ease(" ".join(one.words for one in summary(CENSUS)))) == of_census
    assert least <= min(eases) < least + 5 and most - 5 < max(eases) <= most


def test_the_documentation_shows_the_summary_of_the_census():
    shown = re.sub(r"\n>\s+(?!\*)", " ", PAGE.read_text(encoding="utf-8"))
    for one in summary(CENSUS):
        assert f"> * {one.words}\n" in shown


def test_what_is_held_fixed_is_said_in_everyday_words():
    nested = (("block", "tract"), ("tract", "county"))
    assert everyday(Invariant("person")) == "how many persons there are"
    assert (
        everyday(Invariant("household", by=("block", "tract", "county")), nested)
        == "how many households each block has"
    )
    at_least = Invariant("household", by=("block",), at_least=3)
    assert everyday(at_least) == "for each block, whether there are at least 3 households"
    assert everyday(Invariant(name="the weather")) == "the weather"
    many = [Invariant("person", by=(name,)) for name in "abcde"]
    said = explain(flavors.given_invariants(flavors.pure(), many, nearest=1).at(1)).statement("summary.taken").words
    assert said.endswith("how many persons each c has; and 2 more tables of counts.")


def test_a_guarantee_that_rules_nothing_out_says_so_first():
    assert [one.id for one in summary(flavors.pure().at("infinity"))] == ["summary.unlimited"]
    assert [one.id for one in summary(EXAMPLES["nothing"])] == ["summary.nobody"]
    large = [one.id for one in summary(flavors.pure().at(60))]
    assert large == ["summary.about", "summary.taken", "summary.vast", "summary.outside"]
