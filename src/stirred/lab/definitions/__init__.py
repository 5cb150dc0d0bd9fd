"""Definitions of privacy and what follows from them, as far as no release, estimate or explanation needs it."""
