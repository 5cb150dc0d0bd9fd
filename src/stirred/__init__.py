"""Release data under differential privacy with invariants, and say honestly what the guarantee means.

Each mechanism is a room with the same verbs: ``from stirred import swap``, then ``swap.check``, ``swap.release``,
``swap.verify``.
"""

__version__ = "0.1.0"
