"""Errors about signing a release."""

from __future__ import annotations

from pathlib import Path

from stirred.errors.kinds import OutputError


def no_signing_program() -> OutputError:
    return OutputError(
        "no-signing-program",
        "The program ssh-keygen was not found. It makes and checks signatures.",
        "Install OpenSSH 8.2 or newer. docs/security.md says how to do without it (stirred docs security).",
    )


def cannot_sign(path: Path, reason: str) -> OutputError:
    return OutputError(
        "cannot-sign",
        f"{path} was not signed: {reason}.",
        "Nothing was written. A key is made with: ssh-keygen -t ed25519 -f KEYFILE",
    )


def not_all_compared(path: Path, answer: str, may_be_told: bool) -> OutputError:
    told = " Or sign it all the same with --although-not-compared, which the signature then states."
    return OutputError(
        "not-all-compared",
        f"{path} was not signed. {answer}",
        "Nothing was written. Verify and sign it with the versions that its certificate names."
        + (told if may_be_told else ""),
    )


def no_signers(path: Path, reason: str) -> OutputError:
    return OutputError(
        "no-signers",
        f"The list of signers {path} cannot be read: {reason}.",
        'Each of its lines is: NAME namespaces="stirred-release" PUBLIC-KEY; the publisher gives you theirs.',
    )
