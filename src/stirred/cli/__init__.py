"""The command line: one module for the commands of a subject."""
