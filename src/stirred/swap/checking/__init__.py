"""What a custodian learns of a swap beside its guarantee: risks, forecasts, reasons to stop, true beside released
tables."""
