"""The guarantee of a swap plan whose data are not read, from the size of its largest stratum (Theorem 3.2.4).

Epsilon depends on the rate and on b alone, so a typed b gives the whole specification. Keep in mind: it is the
guarantee of data with such a stratum; whether the data have one, the release says.
"""

from __future__ import annotations

import numpy as np

from stirred import errors
from stirred.spec import Specification
from stirred.swap.margins import Strata
from stirred.swap.plan import SwapPlan
from stirred.swap.specifying import specify


def specify_typed(plan: SwapPlan, largest: int) -> Specification:
    """The specification of a plan on data whose largest stratum with two different records has ``largest`` records."""
    if isinstance(largest, bool) or not isinstance(largest, int) or not 2 <= largest < 1 << 40:
        raise errors.report_option("--largest-stratum", "must be a whole number from 2 on")
    if plan.rates:
        raise errors.report_option(
            "--largest-stratum", "does not say enough for a plan with rates by rule: epsilon depends on every stratum"
        )
    if plan.hold == "rest" or any(table.hold == "rest" for table in plan.linked):
        raise errors.report_option(
            "--largest-stratum", "needs a plan that names its held columns: hold = 'rest' names them by the file"
        )
    linked = {table.name: tuple(table.hold) for table in plan.linked}
    strata = Strata(np.array([largest]), np.array([True]), np.array([True]))
    return specify(plan, tuple(plan.hold), linked, strata, None)
