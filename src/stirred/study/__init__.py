"""Several ways of protecting one dataset side by side, and simulators of swappers that have no guarantee.

Nothing here writes a release: a simulator gives a frame, and a study tables and pictures.
"""
