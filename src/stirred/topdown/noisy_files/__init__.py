"""Noisy measurement files as the Census Bureau publishes them: read as the measurements of a release, or written."""
