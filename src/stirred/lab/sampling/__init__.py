"""Sampling designs that draw from a frame, and small surveys listed in full, to try claims about sampling on."""
