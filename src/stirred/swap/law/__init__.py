"""The law of a swap in numbers: epsilon, the permutation itself, moments of cells, and exact laws of small strata."""
