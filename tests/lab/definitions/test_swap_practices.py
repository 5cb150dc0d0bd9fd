"""What the theorem does not cover: losses against an oracle and closed forms, and against the page that states them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from rates_oracle import adding, bound, dropping, keeping, reselecting, worst_ratio
from swap_oracle import partitions, to_other_places

from stirred.errors import StirredError
from stirred.lab.definitions.swap_practices import (
    HALF,
    HIGH,
    LOW,
    PRACTICES,
    Practice,
    best_of,
    deranged,
    paired,
    practice,
    reselected,
    tables,
    with_nearest,
)

PAGE = Path(__file__).parents[3] / "docs" / "coming-from-sdcmicro.md"
NAMES = [one.name for one in PRACTICES]


def universe_of(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    example = practice(name)
    return tuple(Counter(example.held).values()), tuple(Counter(example.swapped).values())


# -- the losses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_practice_loses_more_than_the_theorem_allows_and_our_swap_never_does(name):
    one = practice(name)
    assert one.own.number <= one.theorem * (1 + 1e-12) < one.loss.number
    assert one.theorem == pytest.approx(bound(len(one.held), one.rates), rel=1e-12)
    rates = dict(zip(map(int, one.held), one.rates, strict=True))
    own = worst_ratio(*universe_of(name), lambda file: [rates[h] for h, _ in file])
    assert one.own.number == pytest.approx(own, rel=1e-12)


def by_count(unique, others):
    return lambda file: [unique if Counter(file)[record] == 1 else others for record in file]


@pytest.mark.parametrize(
    ("name", "rates_of", "law", "published"),
    [
        ("lone-dropped", lambda file: [LOW, LOW, HIGH, HIGH], dropping, 1.125),
        ("lone-kept", lambda file: [Fraction(4, 5)] * 2, keeping, 1.146),
        ("lone-partnered", lambda file: [Fraction(1, 1000)] * 4, adding, 1.32),
        ("unique-in-county", by_count(HALF, LOW), reselecting, 1.331),
        ("k-anonymity", by_count(Fraction(1), LOW), reselecting, math.inf),
        ("forced", lambda file: [LOW, LOW, Fraction(1)], reselecting, math.inf),
        ("frozen", lambda file: [LOW, LOW, Fraction(0)], reselecting, math.inf),
    ],
)
def test_losses_are_those_of_the_oracle(name, rates_of, law, published):
    one = practice(name)
    assert one.loss.number == pytest.approx(worst_ratio(*universe_of(name), rates_of, law), rel=1e-12)
    assert one.times == pytest.approx(published, rel=2e-3)


def test_two_households_have_closed_forms():
    exchanged = LOW**2 / (LOW**2 + (1 - LOW) ** 2)
    assert exchanged == Fraction(1, 2402)
    # Both of the last five draws must be exchanged for the exchanged file to be released.
    assert practice("best-of-five").loss.number == pytest.approx(math.log(1 / exchanged**5 - 1) / 2, rel=1e-12)
    # A score on or off the list is one record's distance; without an exchange the file itself is released.
    both, one = 1 - HIGH**2 / (HIGH**2 + LOW**2), Fraction(1, 2)
    assert practice("score-from-outside").loss.number == pytest.approx(math.log(one / both), rel=1e-12)
    assert practice("score-from-outside").loss.worst.distance == 1
    assert practice("published-log").chance("0A 1B", "0B* 1A*") == exchanged


def test_a_score_that_is_held_is_covered():
    """The same households with the score as part of what is held: then the rates are a function of held values."""
    for rates in itertools.product((LOW, HIGH), repeat=2):
        one = Practice("", "", "01", "AB", rates, lambda file, rates=rates: tables(file, deranged(reselected(rates))))
        assert one.loss.number <= one.theorem * (1 + 1e-12)


def test_it_is_closeness_that_breaks_the_bound_not_the_single_exchange():
    """The same exchange with any household elsewhere has a finite loss."""

    def with_any(file):
        found = Counter({tuple(range(3)): 1 - LOW})
        for i, j in itertools.permutations(range(3), 2):
            found[tuple({i: j, j: i}.get(slot, slot) for slot in range(3))] += LOW / 6
        return tables(file, found)

    one = practice("nearest-donor")
    again = Practice("", "", one.held, one.swapped, one.rates, with_any)
    assert again.loss.number < one.theorem and math.isinf(one.loss.number)


def test_merging_by_places_merges_one_file_and_not_the_other():
    one = practice("merge-by-place")
    assert one.chance("0A 0B 1A 1B", "0A 0B 1A 1B") == 1
    assert 0 < one.chance("0A 0A 1B 1B", "0A 0B 1A 1B") < 1


@pytest.mark.parametrize("n", [2, 3, 4])
def test_partners_elsewhere_have_not_been_seen_above_the_bound(n):
    """Open, and said to be so on the page: all universes of up to four records."""
    for rate in (LOW, Fraction(3, 10), Fraction(4, 5)):
        for held, swapped in itertools.product(partitions(n), repeat=2):
            if len(held) > 1 and len(swapped) > 1:
                one = Practice(
                    "", "",
                    "".join(str(value) * total for value, total in enumerate(held)),
                    "".join("ABCD"[value] * total for value, total in enumerate(swapped)),
                    (rate,) * n,
                    lambda file, rate=rate: tables(file, to_other_places(file, [rate] * n)),
                )  # fmt: skip
                assert one.loss.number <= one.theorem * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_law_adds_up_to_one_and_every_witness_attains_the_loss(name):
    one = practice(name)
    for file in one._files(bool(one.scores)):
        assert sum(one.practised(file).values()) == 1
    released, first, second = one.witness
    chances = [one.chance(file, released) for file in (first, second)]
    if math.isinf(one.loss.number):
        assert min(chances) == 0 < max(chances)
    else:
        apart = abs(math.log(chances[0] / chances[1])) / one.loss.worst.distance
        assert apart == pytest.approx(one.loss.number, rel=1e-12)


def test_pairs_and_nearest_are_exchanges_of_two():
    for moves in (paired([LOW] * 4), with_nearest((("0", "A"), ("0", "B"), ("1", "D")), LOW)):
        assert sum(moves.values()) == 1
        assert all(order[order[i]] == i for order in moves for i in order)
    assert len(paired([LOW] * 4)) == 1 + 6 + 3
    assert (2, 1, 0) not in with_nearest((("0", "A"), ("0", "B"), ("1", "D")), LOW)


def test_the_best_of_one_draw_is_that_draw():
    file = (("0", "A"), ("1", "B"), ("2", "C"))
    moves = deranged(reselected([HALF] * 3))
    assert best_of(1, file, moves) == tables(file, moves)


def test_a_practice_that_is_not_listed_is_refused():
    with pytest.raises(StirredError, match="one of score-from-outside"):
        practice("luck")


# -- the page ------------------------------------------------------------------------------------------------


def said() -> str:
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_page_prints_what_is_computed():
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    heading, rest = printed.split("\n", 1)
    assert heading.split() == ["bound", "swap", "lost"]
    assert rest == "".join(f"{one}\n" for one in PRACTICES)


def test_the_page_explains_every_practice_and_its_table_names_no_other():
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+|forced|frozen)`", table)) == set(NAMES)
    assert set(re.findall(r"\*\*`([a-z-]+)`\*\*", text)) == set(NAMES)


def test_the_numbers_in_its_sentences_are_computed_again():
    text = said()

    def factors(name):
        """How many times as likely a release is, and how many times it may be by the theorem."""
        one = practice(name)
        return math.exp(one.loss.worst.divergence), math.exp(one.theorem * one.loss.worst.distance)

    seen, allowed = factors("score-from-outside")
    assert f"a factor of {seen:,.0f}, where the bound allows {allowed:.0f}" in text
    seen, allowed = factors("unique-in-county")
    assert f"{seen / 1e6:.2f} million times as likely" in text and f"{allowed:,.0f} times is allowed" in text
    excess = [100 * (practice(name).times - 1) for name in ("lone-dropped", "lone-kept", "lone-partnered")]
    assert "exceed the bound, by {:.1f}%, {:.1f}% and {:.1f}%".format(*excess) in text
    assert 3.85 < practice("best-of-five").times < 4 and "almost four times the bound" in text
    assert "at rates of 2%, 30% and 80%" in text
    assert practice("k-anonymity").chance("0A 0A 1B", "0A 0A 1B") == 0
    assert practice("fixed-number").chance("0A 1B 2C 3D", "0A 1B 2C 3D") == 0
