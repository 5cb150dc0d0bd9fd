"""Record what riskcal answers, so that the tests can compare with it where it is not installed.

    python tests/golden/record_riskcal.py INTERPRETER

where INTERPRETER is the Python of an environment that has riskcal. It rewrites ``peers/riskcal_tradeoffs.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).parent / "peers" / "riskcal_tradeoffs.json"

PROGRAM = """
import importlib.metadata as metadata, json, platform, warnings
import numpy as np
from riskcal import analysis
warnings.simplefilter("ignore")
levels = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
at = np.array(levels)
told = lambda betas: [float(beta) for beta in np.asarray(betas)]
print(json.dumps({
    "versions": {"python": platform.python_version(),
                 **{name: metadata.version(name) for name in ("riskcal", "numpy", "scipy", "dp-accounting")}},
    "convention": "type II error at each level",
    "levels": levels,
    "gaussian": [{"mu": mu, "errors": told(analysis.get_beta_from_gdp(mu=mu, alpha=at))}
                 for mu in (0.1, 0.47222876, 1.0, 2.2934690)],
    "approximate": [{"epsilon": e, "delta": d, "errors": told(analysis.get_beta_from_adp(e, d, at))}
                    for e, d in ((0.5, 0.0), (1.0, 1e-5), (1.0, 0.1), (4.0, 0.01))],
    "renyi": [{"order": a, "epsilon": e, "errors": told(analysis.get_beta_from_rdp(epsilon=e, alpha=at, order=a))}
              for a, e in ((1.5, 0.3), (2.0, 1.0), (8.0, 1.6), (32.0, 4.0))],
    "zcdp": [{"rho": rho, "errors": told(analysis.get_beta_from_zcdp(rho=rho, alpha=at))}
             for rho in (0.001, 0.1115, 0.5, 0.926, 2.63, 8.0)],
}))
"""


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ended = subprocess.run([sys.argv[1], "-c", PROGRAM], capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{sys.argv[1]} could not answer:\n{ended.stderr}")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(json.loads(ended.stdout), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
