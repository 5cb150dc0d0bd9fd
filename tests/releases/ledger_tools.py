"""What the tests of the ledger share: a dataset, a flavor, and what a refusal must look like."""

import contextlib

import pytest

from stirred.errors import LedgerError, StirredError
from stirred.spec import Domain, flavors

DOMAIN = Domain("health survey", record="person", free=True)
ZCDP = flavors.zcdp("person", domain=DOMAIN)


@contextlib.contextmanager
def refused(kind: str, words: str = "", error: type[StirredError] = LedgerError):
    """The block must end in a refusal of this kind that says these words and carries no other exception."""
    with pytest.raises(error) as refusal:
        yield
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
    assert refusal.value.__cause__ is None
