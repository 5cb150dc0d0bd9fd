"""What a mechanism keeps exactly: declared by columns, counted, recounted before publishing, and fingerprinted."""

from stirred.invariants.margins import Margin, fingerprint
from stirred.invariants.values import Inequality, agree, digest, evaluate, recount

__all__ = ["Inequality", "Margin", "agree", "digest", "evaluate", "fingerprint", "recount"]
