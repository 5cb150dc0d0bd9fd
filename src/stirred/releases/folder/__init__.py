"""The folder of a release: its files, its manifest and documents, and how its recipient reads and verifies it."""
