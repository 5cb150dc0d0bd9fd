"""All claims, room by room."""

from __future__ import annotations

import composition_referee
import loss_referee

CLAIMS = (*loss_referee.CLAIMS, *composition_referee.CLAIMS)
