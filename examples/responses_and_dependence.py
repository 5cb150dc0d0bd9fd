"""Randomised response: estimate a share, and see what is learnt about one person when people resemble each other.

The numbers are those of the slides of Bailie, Gong, Meng and Drechsler (2024). The last part corrects one of their
bounds.
"""

import math

from stirred.lab.definitions.beliefs import (
    Beliefs,
    covariance,
    dependency_component,
    markov_boundary,
    pair_likelihood_ratio,
    posterior_factor,
    prior_to_posterior_bounds,
)
from stirred.semantics.randomised_response import summarise_responses
from stirred.spec.order.finite_mechanisms import randomised_response

# 45 of 100 students say yes to "did you cheat?". Each tells the truth with probability 0.6, else the opposite.
cheated = summarise_responses(yes=45, answers=100, keep="0.6")
print(f"share {cheated.share}, standard error {cheated.standard_error}, at most {cheated.largest_standard_error}")
print(f"epsilon of one answer: {cheated.epsilon:.7f}")

# One person alone: from prior to posterior by a factor of at most e^epsilon, which is approached for small priors.
print("\nfactor of somebody whose answer says yes, by prior:")
for prior in (0.001, 0.1, 0.5):
    print(f"  {prior:<5} {float(posterior_factor(math.e, prior)):.4f}")  # epsilon = 1

# Two people who both answer yes. If the second resembles the first, her answer tells about the first one too.
print("\nP(X2=1 | X1=1), P(X2=1 | X1=0): likelihood ratio of two yes, covariance")
for a, b in ((1.0, 0.0), (0.8, 0.3), (0.5, 0.5), (0.3, 0.8)):
    joint = [[0.5 * (1 - b), 0.5 * b], [0.5 * (1 - a), 0.5 * a]]
    print(f"  {a}, {b}: {pair_likelihood_ratio(1, joint):.6f}, {covariance(joint):+.3f}")

# Two people who are sure to be alike: above e for every prior below 1/(1 + e).
print("\nfactor of the first one, two alike, both yes, by prior:")
for prior in (0.01, 0.1, 0.2, 1 / (1 + math.e), 0.5):
    print(f"  {prior:<8.6g} {float(posterior_factor(math.exp(2), prior)):.4f}")

# A chain of three: the second one is nearly a copy of the first, the third one of the second. Given the second, the
# third says nothing more about the first. The slides count only those two and bound the factor by e^2 = 7.389.
keep = math.e / (1 + math.e)
first_yes, changed = 1e-4, 0.01
chain = {}
for x in ("000", "001", "010", "011", "100", "101", "110", "111"):
    chance = first_yes if x[0] == "1" else 1 - first_yes
    for one, other in (x[:2], x[1:]):
        chance *= changed if one != other else 1 - changed
    chain[tuple(x)] = chance
seen = Beliefs(chain, randomised_response(1 - keep, respondents=3), target=0)
factor = seen.prior_to_posterior[seen.records.index("1"), seen.outputs.index("111")]
print(f"\nMarkov boundary of the first: {markov_boundary(chain, 0)}; factor after three yes: {factor:.3f}, above e^2")
component = dependency_component(chain, 0)
print(f"all who depend on each other: {component}; bound {prior_to_posterior_bounds(len(component), 1)[1]:.3f}")
