"""Numbers about the five building blocks: chapters 1 and 2 and appendix A of the thesis."""

from __future__ import annotations
