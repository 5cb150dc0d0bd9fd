"""The ledger of a confidential dataset: which releases were made of it, and what they cost together."""
