"""Which of two guarantees is stronger: conversions between their blocks, and the decision with its steps."""
