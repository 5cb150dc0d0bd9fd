"""What every mechanism shares: plans, the order of a release, its folder and documents, the ledger."""
