"""Exact random numbers: discrete Gaussian and Laplace noise, coins, permutations, randomised response.

Given uniform random bits, every law here is the mathematical one: integers and fractions decide, floating-point numbers
never do, and no statistical distance is left to account for. Running time is *not* constant: how long a draw takes, and
which memory it touches, depends on what is drawn, so an observer who can time single draws or watch the machine's
caches may learn about the noise. Draw in batches, away from such observers.

Coins with a rational probability are in :mod:`stirred.noise.coins`, one draw at a time as published by Canonne, Kamath
and Steinke in :mod:`stirred.lab.definitions.reference_sampler`.
"""

from stirred.noise.coins import bernoulli_exp, randomised_response
from stirred.noise.gaussian import discrete_gaussian, discrete_gaussian_each
from stirred.noise.laplace import discrete_laplace, discrete_laplace_each
from stirred.noise.selection import reselect, reselect_by_class, select, select_by_class
from stirred.noise.source import RandomSource, SeededSource, SystemSource
from stirred.noise.uniform import derange_groups, shuffle_groups, uniform_integers

__all__ = [
    "RandomSource",
    "SeededSource",
    "SystemSource",
    "bernoulli_exp",
    "derange_groups",
    "discrete_gaussian",
    "discrete_gaussian_each",
    "discrete_laplace",
    "discrete_laplace_each",
    "randomised_response",
    "reselect",
    "reselect_by_class",
    "select",
    "select_by_class",
    "shuffle_groups",
    "uniform_integers",
]
