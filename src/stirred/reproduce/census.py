"""Numbers about the census of 2020 and its TopDown Algorithm: chapters 3 and 4 of the thesis, the working paper."""

from __future__ import annotations
