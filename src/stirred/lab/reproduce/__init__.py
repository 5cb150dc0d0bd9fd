"""Compute every published number again and say whether it agrees: what ``stirred reproduce`` prints.

The list of published numbers is in ``published/*.toml``, which is the folder ``tests/golden/published`` of the
repository; the tests read it too. Each number names the function here that computes it (see :mod:`.computations`).
"""
