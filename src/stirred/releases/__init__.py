"""What all mechanisms share: plans, the steps of a release, its folder and documents, the ledger."""
