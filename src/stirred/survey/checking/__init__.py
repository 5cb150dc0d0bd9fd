"""What a custodian learns before a release: what the file shows against its plan, expected errors, true beside released
tables."""
