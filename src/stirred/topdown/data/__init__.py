"""Confidential tables counted in the places of the geography, what is kept of them exactly, and the list of places
itself."""
