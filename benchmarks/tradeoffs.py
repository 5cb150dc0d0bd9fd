"""The trade-off function of zCDP and the epsilon of zCDP, beside other libraries.

    python benchmarks/tradeoffs.py --peers INTERPRETER    a minute; rewrites its section of RESULTS.md
    python benchmarks/tradeoffs.py --keep                 print only

INTERPRETER is the Python of an environment with riskcal, and with dp_accounting and opendp if there are such; without
it only our own times are printed. Each library runs in a process of its own, so that none pays for another's imports.
Curves: 1,000 levels evenly between 0.001 and 0.999. Tightness: our type II error less theirs; positive is tighter for
us, and a negative one beyond rounding is a power that rho-zCDP does allow and they exclude.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from typing import Any

import numpy as np

from results import machine, seconds, write_section
from stirred.loss import GaussianCurve, ZcdpCurve, zcdp_to_approximate

LEVELS = np.linspace(0.001, 0.999, 1000)
RHOS = (0.001, 0.1115, 0.926, 2.63, 8.0)
DELTA = 1e-10
EPSILON_RHO = 2.56

PROGRAM = """
import importlib.metadata as metadata, json, time, warnings
import numpy as np
warnings.simplefilter("ignore")
def best(job, repeats):
    job()
    times = []
    for _ in range(repeats):
        began = time.perf_counter(); answer = job(); times.append(time.perf_counter() - began)
    return min(times), answer
levels, answers, versions = np.linspace(0.001, 0.999, 1000), {"curves": {}, "epsilons": {}}, {}
try:
    from riskcal import analysis
    versions["riskcal"] = metadata.version("riskcal")
    for rho in RHOS:
        seconds, errors = best(lambda: analysis.get_beta_from_zcdp(rho=rho, alpha=levels), 3)
        answers["curves"][str(rho)] = {"seconds": seconds, "errors": [float(error) for error in errors]}
except ImportError:
    pass
try:
    from dp_accounting import dp_event, rdp
    versions["dp-accounting"] = metadata.version("dp-accounting")
    def accounted():
        accountant = rdp.RdpAccountant()
        accountant.compose(dp_event.ZCDpEvent(RHO, 0.0))
        return accountant.get_epsilon(DELTA)
    answers["epsilons"]["dp_accounting, ZCDpEvent"] = best(accounted, 20)
except (ImportError, AttributeError):
    pass
try:
    import opendp.prelude as dp
    dp.enable_features("contrib")
    versions["opendp"] = metadata.version("opendp")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=(1 / (2 * RHO)) ** 0.5)
    profile = dp.c.make_zCDP_to_approxDP(noise)
    answers["epsilons"]["OpenDP, make_zCDP_to_approxDP"] = best(lambda: profile.map(1.0).epsilon(DELTA), 20)
except ImportError:
    pass
print(json.dumps({**answers, "versions": versions}))
"""


def peers(interpreter: str | None) -> dict[str, Any]:
    if interpreter is None:
        return {"curves": {}, "epsilons": {}, "versions": {}}
    program = f"RHOS, RHO, DELTA = {RHOS!r}, {EPSILON_RHO!r}, {DELTA!r}\n{PROGRAM}"
    ended = subprocess.run([interpreter, "-c", program], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def curves(theirs: dict[str, Any]) -> list[str]:
    lines = [
        "| rho | milliseconds | riskcal | times faster | tighter by at most | excludes what Gaussian noise does |",
        "|---|---|---|---|---|---|",
    ]
    for rho in RHOS:
        ours = seconds(lambda: ZcdpCurve(rho).type_two_error(LEVELS), 20)  # noqa: B023
        row = f"| {rho:g} | {ours * 1e3:.1f} |"
        if (other := theirs["curves"].get(str(rho))) is None:
            lines.append(f"{row} - | - | - | - |")
            continue
        errors = np.array(other["errors"])
        tighter = float(np.max(ZcdpCurve(rho).type_two_error(LEVELS) - errors))
        wrong = int(np.sum(errors > GaussianCurve(math.sqrt(2 * rho)).type_two_error(LEVELS) + 1e-6))
        lines.append(
            f"{row} {other['seconds'] * 1e3:.0f} | {other['seconds'] / ours:.0f} | {tighter:.1e} | "
            f"{f'at {wrong} levels' if wrong else 'nowhere'} |"
        )
    return lines


def epsilons(theirs: dict[str, Any]) -> list[str]:
    ours = seconds(lambda: zcdp_to_approximate(EPSILON_RHO, DELTA, "tight"), 200)
    lines = ["| who | epsilon | milliseconds | times ours |", "|---|---|---|---|"]
    lines.append(f"| stirred, tight | {zcdp_to_approximate(EPSILON_RHO, DELTA, 'tight'):.6f} | {ours * 1e3:.3f} | 1 |")
    for name, (took, epsilon) in theirs["epsilons"].items():
        lines.append(f"| {name} | {epsilon:.6f} | {took * 1e3:.3f} | {took / ours:.0f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", metavar="INTERPRETER", help="the Python of an environment with the other libraries")
    parser.add_argument("--keep", action="store_true", help="print only, do not rewrite RESULTS.md")
    options = parser.parse_args()
    theirs = peers(options.peers)
    first, second = curves(theirs), epsilons(theirs)
    print("\n".join([*first, "", *second]))
    if not options.keep:
        versions = "".join(f", {name} {version}" for name, version in theirs["versions"].items())
        write_section(
            __file__,
            f"{machine(['numpy', 'scipy', 'numba'])}{versions}\n\n"
            "The trade-off function of rho-zCDP at 1,000 levels. The last two columns: how much larger our type II "
            "error is at some level, and at how many levels theirs forbids what Gaussian noise of this rho does.\n\n"
            + "\n".join(first)
            + f"\n\nEpsilon of rho-zCDP at rho = {EPSILON_RHO:g} and delta = {DELTA:g}.\n\n"
            + "\n".join(second),
        )


if __name__ == "__main__":
    main()
