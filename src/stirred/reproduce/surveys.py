"""Numbers about surveys: chapters 6 to 8 and appendix D of the thesis."""

from __future__ import annotations
