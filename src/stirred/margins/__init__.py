"""Tables by their margins, for every mechanism: what a table counts, least squares from noisy margins, shares of noise.

Attributes, recodes and the cells that follow, margins as products of small matrices, best linear unbiased estimates of
one table or over a tree of places, and how to divide a budget among the margins that are measured.
"""
