"""Who published a release can be checked, and a signature of something else does not pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import stirred
from stirred.errors import OutputError
from stirred.releases.folder import manifest as signatures
from stirred.releases.folder.manifest import sign, signature_verdicts, signers_line, write_manifest
from stirred.releases.verdicts import State

needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


@dataclass(frozen=True)
class Signed:
    """A release signed with a key, the key, and a list of signers that has it."""

    folder: Path
    key: Path
    signers: Path

    @property
    def signature(self) -> Path:
        return self.folder / signatures.SIGNATURE


def new_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


def release(folder: Path, rate: float = 0.1) -> Path:
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    stirred.release(stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=rate), rows, out=folder)
    return folder


@pytest.fixture
def unsigned(tmp_path) -> Path:
    return release(tmp_path / "release")


@pytest.fixture
def signed(unsigned, tmp_path) -> Signed:
    key = new_key(tmp_path / "key")
    sign(unsigned, key)
    signers = tmp_path / "signers"
    signers.write_text(f"{signers_line(key, 'office@example.org')}\n", encoding="utf-8")
    return Signed(unsigned, key, signers)


def verdict(folder: Path, signers: Path | None) -> tuple[bool, str]:
    (found,) = signature_verdicts(folder, signers)
    return found.holds, found.words


# -- what holds --------------------------------------------------------------------------------------------------


@needs_openssh
def test_a_signature_by_an_allowed_signer_names_them(signed):
    holds, words = verdict(signed.folder, signed.signers)
    assert holds
    assert words.startswith("signed by office@example.org with the key SHA256:")


@needs_openssh
def test_without_a_list_of_signers_only_the_key_is_named(signed):
    holds, words = verdict(signed.folder, None)
    assert holds
    assert words.startswith("signed with the key SHA256:")
    assert "whose key it is was not checked" in words
    printed = subprocess.run(["ssh-keygen", "-l", "-f", signed.key], capture_output=True, text=True, check=True)
    assert printed.stdout.split()[1] in words


@needs_openssh
def test_a_signature_made_by_ssh_keygen_itself_passes(unsigned, tmp_path):
    key = new_key(tmp_path / "key")
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", signatures.NAMESPACE, "-f", key, unsigned / "manifest.json"]
    subprocess.run(words, check=True)
    (tmp_path / "signers").write_text(f"{signers_line(key, 'a')}\n", encoding="utf-8")
    assert verdict(unsigned, tmp_path / "signers")[0]


def test_no_signature_claims_nothing_unless_one_is_asked_for(unsigned, tmp_path):
    assert verdict(unsigned, None) == (True, "not signed: the folder does not show who published it")
    (tmp_path / "signers").write_text("", encoding="utf-8")
    holds, words = verdict(unsigned, tmp_path / "signers")
    assert not holds
    assert "a signature was asked for" in words


# -- what does not -----------------------------------------------------------------------------------------------


@needs_openssh
def test_a_signer_who_is_not_in_the_list_is_not_accepted(signed, tmp_path):
    other = new_key(tmp_path / "other")
    signed.signers.write_text(f"{signers_line(other, 'office@example.org')}\n", encoding="utf-8")
    holds, words = verdict(signed.folder, signed.signers)
    assert not holds
    assert "does not allow to sign releases" in words


@needs_openssh
def test_a_key_that_is_allowed_for_other_things_only_is_not_accepted(signed):
    line = signed.signers.read_text(encoding="utf-8").replace(signatures.NAMESPACE, "git")
    signed.signers.write_text(line, encoding="utf-8")
    assert not verdict(signed.folder, signed.signers)[0]


@needs_openssh
def test_a_changed_manifest_is_not_what_was_signed(signed):
    manifest = signed.folder / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8") + " ", encoding="utf-8")
    for signers in (None, signed.signers):
        holds, words = verdict(signed.folder, signers)
        assert not holds
        assert "no signature of this manifest" in words


@needs_openssh
def test_a_signature_of_another_release_or_for_another_use_does_not_pass(signed, tmp_path):
    sign(release(tmp_path / "second", 0.2), signed.key)
    shutil.copy(tmp_path / "second" / signatures.SIGNATURE, signed.signature)
    assert not verdict(signed.folder, signed.signers)[0]
    signed.signature.unlink()
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", signed.key, signed.folder / "manifest.json"]
    subprocess.run(words, check=True)
    assert not verdict(signed.folder, signed.signers)[0]
    assert not verdict(signed.folder, None)[0]


@needs_openssh
@pytest.mark.parametrize("junk", [b"", b"\x1b[2Kholds  all of it\n", b"-----BEGIN SSH SIGNATURE-----\n", b"\0" * 5000])
def test_junk_is_no_signature(signed, junk):
    signed.signature.write_bytes(junk)
    for signers in (None, signed.signers):
        holds, words = verdict(signed.folder, signers)
        assert not holds
        assert words.isprintable()


@needs_openssh
def test_only_a_regular_file_of_bounded_size_is_read_as_a_signature(signed, tmp_path):
    elsewhere = signed.signature.rename(tmp_path / "elsewhere")
    signed.signature.symlink_to(elsewhere)
    assert verdict(signed.folder, signed.signers) == (False, "manifest.json.sig is not a signature: it is a link")
    signed.signature.unlink()
    os.mkfifo(signed.signature)
    assert "it is not a regular file" in verdict(signed.folder, signed.signers)[1]
    signed.signature.unlink()
    signed.signature.mkdir()
    assert "it is not a regular file" in verdict(signed.folder, signed.signers)[1]
    signed.signature.rmdir()
    with signed.signature.open("wb") as file:
        file.truncate(10**12)
    holds, words = verdict(signed.folder, signed.signers)
    assert not holds
    assert "1,000,000,000,000 bytes" in words


@needs_openssh
def test_names_in_the_list_of_signers_are_printed_without_control_characters(signed):
    name = "office\x1b[2K"
    signed.signers.write_bytes(f"{signers_line(signed.key, name)}\n".encode())
    holds, words = verdict(signed.folder, signed.signers)
    assert holds
    assert words.isprintable()


# -- what cannot be done -----------------------------------------------------------------------------------------


def test_without_ssh_keygen_it_is_said_that_nothing_was_checked(unsigned, tmp_path, monkeypatch):
    text = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
    (unsigned / signatures.SIGNATURE).write_text(text, encoding="utf-8")
    (tmp_path / "signers").write_text("", encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    states = {None: State.NOT_COMPARED, tmp_path / "signers": State.NOT_CHECKED}
    for signers, state in states.items():
        (found,) = signature_verdicts(unsigned, signers)
        assert found.state is state and not found.holds
        assert found.words.startswith("its signature: ") and "ssh-keygen was not found" in found.words
    (unsigned / signatures.SIGNATURE).unlink()
    (tmp_path / "key").write_text("", encoding="utf-8")
    refused("no-signing-program", unsigned, tmp_path / "key")


def test_a_program_that_does_not_answer_is_not_waited_for(unsigned, tmp_path, monkeypatch):
    slow = tmp_path / "ssh-keygen"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 600\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(signatures, "_CHECKING_SECONDS", 0.1)
    text = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
    (unsigned / signatures.SIGNATURE).write_text(text, encoding="utf-8")
    (found,) = signature_verdicts(unsigned, None)
    assert found.state is State.NOT_CHECKED


def test_a_list_of_signers_that_is_not_there_is_refused(unsigned, tmp_path):
    with pytest.raises(OutputError) as found:
        signature_verdicts(unsigned, tmp_path / "none")
    assert found.value.kind == "no-signers"


def refused(kind: str, folder: Path, key: Path) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(OutputError) as found:
        sign(folder, key)
    assert found.value.kind == kind
    assert sorted(folder.iterdir()) == before


@needs_openssh
def test_nothing_is_signed_over_or_without_a_key_or_unfinished(signed, unsigned, tmp_path):
    refused("output-exists", signed.folder, signed.key)
    signed.signature.unlink()
    refused("cannot-sign", signed.folder, tmp_path / "no-key")
    (tmp_path / "junk").write_text("junk", encoding="utf-8")
    refused("cannot-sign", signed.folder, tmp_path / "junk")
    (signed.folder / ".lock").touch()
    refused("not-a-release", signed.folder, signed.key)
    (tmp_path / "empty").mkdir()
    refused("not-a-release", tmp_path / "empty", signed.key)


# -- the command -------------------------------------------------------------------------------------------------


@needs_openssh
def test_the_command_signs_and_says_what_recipients_need(unsigned, tmp_path, command):
    key = new_key(tmp_path / "key")
    ended = command("sign", unsigned, "--key", key)
    assert ended.code == 0, ended.err
    (line,) = [line.strip() for line in ended.out.splitlines() if "ssh-ed25519" in line]
    (tmp_path / "signers").write_text(line + "\n", encoding="utf-8")
    assert verdict(unsigned, tmp_path / "signers")[0]
    assert "does not show that the data are right" in ended.said
    again = command("sign", unsigned, "--key", key)
    assert again.code == 2
    assert "exists already" in again.said


@needs_openssh
def test_the_command_signs_no_release_that_does_not_verify(unsigned, tmp_path, command):
    (unsigned / "README.txt").write_text("changed", encoding="utf-8")
    ended = command("sign", unsigned, "--key", new_key(tmp_path / "key"))
    assert ended.code == 2
    assert "README.txt is not the file that was released" in ended.said
    assert not (unsigned / signatures.SIGNATURE).exists()


@needs_openssh
def test_what_was_not_compared_as_a_whole_is_signed_only_if_told_and_the_signature_states_it(
    unsigned, tmp_path, command
):
    claim_another_version(unsigned)
    key = new_key(tmp_path / "key")
    refused = command("sign", unsigned, "--key", key)
    assert refused.code == 2 and not (unsigned / signatures.SIGNATURE).exists()
    assert "not everything was compared. Not compared: " in refused.said and "--although-not-compared" in refused.said
    signed = command("sign", unsigned, "--key", key, "--although-not-compared")
    assert signed.code == 0 and "The signature states that not everything was compared" in signed.said
    (line,) = [line.strip() for line in signed.out.splitlines() if "ssh-ed25519" in line]
    (tmp_path / "signers").write_text(line + "\n", encoding="utf-8")
    holds, words = verdict(unsigned, tmp_path / "signers")
    assert holds and "although not everything in it had been compared, and unchanged since" in words
    assert "although not everything in it had been compared" in verdict(unsigned, None)[1]
    ended = command("verify", unsigned, "--signers", tmp_path / "signers")
    assert ended.code == 4
    (tmp_path / "signers").write_text(f"{signers_line(key, 'office@example.org')}\n", encoding="utf-8")
    holds, words = verdict(unsigned, tmp_path / "signers")
    assert not holds and "does not allow to sign releases that were not compared as a whole" in words


@needs_openssh
def test_what_was_compared_as_a_whole_is_signed_as_such_whatever_is_told(unsigned, tmp_path, command):
    assert command("sign", unsigned, "--key", new_key(tmp_path / "key"), "--although-not-compared").code == 0
    assert "although" not in verdict(unsigned, None)[1]


def claim_another_version(folder: Path) -> None:
    path = folder / "certificate.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["versions"]["stirred"] = "99.0.0"
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(folder)
