"""The command line: commands that belong together share a module, which ``app`` puts together."""
