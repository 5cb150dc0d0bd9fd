"""What the custodian learns before and after a release: sizes, expected errors and bias, contradictions, what
invariants reveal."""
