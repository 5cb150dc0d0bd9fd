"""All claims, room by room."""

from __future__ import annotations

import composition_referee
import estimates_referee
import invariants_referee
import limits_referee
import loss_referee
import noise_referee
import semantics_referee
import spec_referee
import swap_referee
import topdown_referee

CLAIMS = (
    *loss_referee.CLAIMS,
    *composition_referee.CLAIMS,
    *noise_referee.CLAIMS,
    *spec_referee.CLAIMS,
    *invariants_referee.CLAIMS,
    *semantics_referee.CLAIMS,
    *limits_referee.CLAIMS,
    *swap_referee.CLAIMS,
    *topdown_referee.CLAIMS,
    *estimates_referee.CLAIMS,
)
