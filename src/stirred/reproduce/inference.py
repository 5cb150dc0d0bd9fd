"""Numbers about limits of inference: chapter 5 and appendix C of the thesis, and the paper that it comes from."""

from __future__ import annotations
