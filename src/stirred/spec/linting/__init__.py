"""Rules that look at a guarantee and say what makes its budget small, or void."""
