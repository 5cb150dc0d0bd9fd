"""Publish data under differential privacy with invariants, and explain what the guarantee means.

Make a release and check it::

    import stirred

    plan = stirred.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
    print(stirred.check(plan, "households.csv"))           # draws nothing; confidential
    stirred.release(plan, "households.csv", out="release")  # draws once
    stirred.verify("release")                              # from the folder alone

Understand a guarantee::

    stirred.explain("das-2020-overall")                    # what can be learnt, and about whom
    stirred.compare("das-2020-overall", "rho=1")           # side by side
    stirred.lint("release")                                # what it leaves out

What is here
------------
Plans: ``SwapPlan``, ``LinkedTable``, ``TopDownPlan``, ``SurveyPlan``.
With a plan: ``check``, ``calibrate``, ``release``. With a release: ``verify``, ``tabulate``, ``estimate``.
With any guarantee: ``read``, ``explain``, ``compare``, ``lint``, ``compose``, ``report``. The guarantee itself:
``Specification``, ``flavors`` (named types of guarantees). A record of all releases of one dataset: ``Ledger``.
Modules: ``swap``, ``topdown``, ``survey`` (the mechanisms), ``limits`` (the most that anyone can learn), ``semantics``,
``loss`` (privacy accounting), ``noise`` (exact random numbers), ``spec`` (specifications), ``mechanisms`` (the list of
them).

Every error meant for users is a ``StirredError``: its message says what is wrong, then what to do.
"""

from typing import TYPE_CHECKING

from stirred._earlier_paths import find_earlier_paths
from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred import (
        limits as limits,
        loss as loss,
        mechanisms as mechanisms,
        noise as noise,
        semantics as semantics,
        spec as spec,
        survey as survey,
        swap as swap,
        topdown as topdown,
    )
    from stirred.errors import StirredError as StirredError
    from stirred.releases.ledger.ledger import Ledger as Ledger
    from stirred.spec import Specification as Specification, compose as compose, flavors as flavors
    from stirred.survey.plan.fields import SurveyPlan as SurveyPlan
    from stirred.swap.plan.fields import SwapPlan as SwapPlan
    from stirred.swap.plan.sections import LinkedTable as LinkedTable
    from stirred.topdown.plan.fields import TopDownPlan as TopDownPlan
    from stirred.verbs import (
        calibrate as calibrate,
        check as check,
        compare as compare,
        estimate as estimate,
        explain as explain,
        lint as lint,
        read as read,
        release as release,
        report as report,
        tabulate as tabulate,
        verify as verify,
    )

__version__ = "0.8.0.dev0"

__getattr__, __dir__ = lazy(__name__)
find_earlier_paths()
