"""What other swappers do and no epsilon covers, each on two to four households, with its exact loss.

`stirred docs coming-from-sdcmicro` explains every line; held values are numbers, places are letters.
"""

import math

from stirred.lab.definitions.swap_practices import PRACTICES

# bound: epsilon of the swap of this package, by the theorem; swap: its exact loss; lost: that of the practice
print(f"{'':<24}bound  swap   lost")
for practice in PRACTICES:
    print(practice)

unbounded = sum(math.isinf(practice.loss.number) for practice in PRACTICES)
within = all(practice.own.number <= practice.theorem + 1e-12 for practice in PRACTICES)
print(f"\n{len(PRACTICES)} practices, {unbounded} of them without any bound")
print(f"the swap of this package stays within its bound in every example: {within}")
