"""The glossary has the words that the documentation uses, and no others."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
MUST = """multiverse premetric invariant universe epsilon delta rho zCDP stratum spine geounit power false-alarm
trade-off-function budget composition post-processing ledger lattice recode domain specification flavor unit record
mechanism release plan swapping TopDown noise query measurement Pufferfish prior posterior confidential certificate
manifest unbiased interval imputation audit erratum"""


def entries() -> dict[str, str]:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    return {word: said.strip() for word, said in re.findall(r"^### (.+)\n((?:(?!#).*\n?)+)", text, flags=re.M)}


def test_the_glossary_has_every_word_that_it_must():
    assert {word.replace("-alarm", " alarm").replace("trade-off-", "trade-off ") for word in MUST.split()} <= {
        *entries()
    }


def test_every_word_of_the_glossary_is_used_elsewhere_in_the_documentation():
    elsewhere = " ".join(
        " ".join(page.read_text(encoding="utf-8").lower().split())
        for page in DOCS.glob("*.md")
        if page.name != "glossary.md"
    )
    assert [word for word in entries() if word.lower() not in elsewhere] == []


def test_an_entry_is_short_and_its_words_in_italics_are_entries():
    known = {word.lower() for word in entries()}
    for word, said in entries().items():
        assert 20 < len(said) < 330, word
        for named in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", said):
            named = " ".join(named.lower().split())
            assert {named, named.removesuffix("s"), named.removesuffix("es")} & known, (word, named)
