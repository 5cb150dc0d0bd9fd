"""The laboratory: audits, studies and published numbers computed again. No release, estimate or explanation needs any
of it."""
