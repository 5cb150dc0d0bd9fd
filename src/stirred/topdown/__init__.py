"""The TopDown Algorithm: noisy measurements of a hierarchy, then a fit that keeps invariants."""
