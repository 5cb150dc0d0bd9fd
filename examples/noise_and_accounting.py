"""Add exact discrete noise to a few counts, and bound what all of them together cost.

Every answer of the accounting is a lower and an upper bound, so that nothing is lost to rounding.
"""

from fractions import Fraction

import stirred

counts = {"north": 1_204, "east": 88, "south": 0, "west": 3_971}
variance = Fraction(81, 4)

# The noise has exactly the discrete Gaussian law, drawn with integer arithmetic from the system's random bits.
noise = stirred.noise.discrete_gaussian(variance, len(counts), stirred.noise.SystemSource())
for (region, count), drawn in zip(counts.items(), noise, strict=True):
    print(f"{region:6} {count:>6,} {count + int(drawn):>6,}")

# One person changes one of the counts by one. Published every month for a year, the counts are twelve releases.
year = stirred.loss.compose([(stirred.loss.discrete_gaussian(variance), 12)])
for delta in (1e-6, 1e-9):
    print(f"epsilon at delta = {delta:g}: {year.epsilon(delta)}")
print(f"power of the best test with a false alarm of 5%: {year.power(0.05)}")

# The rule for zero-concentrated differential privacy is simpler, and gives a larger epsilon.
rho = 12 / (2 * variance)
print(f"epsilon at delta = 1e-06 from rho = {rho} alone: {stirred.loss.zcdp_to_approximate(float(rho), 1e-6)}")
