"""All claims, room by room."""

from __future__ import annotations

import composition_referee
import estimates_referee
import invariants_referee
import loss_referee
import noise_referee
import spec_referee
import swap_referee

CLAIMS = (
    *loss_referee.CLAIMS,
    *composition_referee.CLAIMS,
    *noise_referee.CLAIMS,
    *spec_referee.CLAIMS,
    *invariants_referee.CLAIMS,
    *swap_referee.CLAIMS,
    *estimates_referee.CLAIMS,
)
