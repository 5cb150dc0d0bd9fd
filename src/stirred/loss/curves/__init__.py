"""Budgets that are curves: how well any test can tell two datasets apart, in general and for the swap itself."""
