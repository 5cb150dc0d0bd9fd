"""What a mechanism keeps exactly: declared by columns, counted, recounted before publishing, and fingerprinted."""

from stirred.invariants.margins import Margin, fingerprint

__all__ = ["Margin", "fingerprint"]
