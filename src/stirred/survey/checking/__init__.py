"""What a custodian learns before a release: whether the file fits the plan, expected errors, true beside noisy sums."""
