"""Envelopes open only with the right key and for the right credential; key files are private."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.security import vault, vault_keys
from poller.security.vault import Keyring

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


@given(st.text(), st.text(min_size=1))
def test_a_sealed_secret_opens_again(secret: str, name: str) -> None:
    """Any text and any name survive a round trip."""
    ring = Keyring([KEY])
    assert ring.open(ring.seal(secret, name, "k"), name, "k") == secret


def test_the_same_secret_never_looks_the_same() -> None:
    """Equal passwords of two credentials have different envelopes."""
    ring = Keyring([KEY])
    assert ring.seal("public", "a", "community") != ring.seal("public", "a", "community")


def test_an_envelope_does_not_open_under_another_name() -> None:
    """Copying a row does not copy the access."""
    ring = Keyring([KEY])
    with pytest.raises(errors.SecretKeyError, match='"b"'):
        ring.open(ring.seal("public", "a", "community"), "b", "community")


def test_an_envelope_does_not_open_as_another_kind_or_version() -> None:
    """The kind of a row, and the version of its envelope, are authenticated."""
    ring = Keyring([KEY])
    envelope = ring.seal("public", "a", "community")
    with pytest.raises(errors.SecretKeyError, match='"a"'):
        ring.open(envelope, "a", "token")
    with pytest.raises(errors.SecretKeyError, match='"a"'):
        ring.open(envelope.replace("v2:", "v1:"), "a", "community")


def test_an_envelope_of_version_1_opens_and_passes_for_no_other_version() -> None:
    """Stored credentials stay readable after an upgrade."""
    ring = Keyring([KEY])
    # Sealed by the release before version 2, with KEY, for the name "core".
    old = (
        "v1:1100a4c5:uH57stKmuko+VDOK8YNpAiTCi3jwYgu85NIxcFnP/+wl85B+XebaRllxi7GXb5+GO1+GiY2gGT3S"
        "dP1f8T5mDA1zlJaHuhUT"
    )
    assert ring.open(old, "core", "community") == '{"kind": "community", "community": "public"}'
    assert not vault.is_current(old)
    with pytest.raises(errors.SecretKeyError, match='"core"'):
        ring.open(old.replace("v1:", "v2:"), "core", "community")


def test_the_error_of_a_wrong_key_names_the_needed_and_the_present_ones() -> None:
    """The error has the ids of both keys and the source of the present ones."""
    envelope = Keyring([KEY]).seal("public", "a", "community")
    with pytest.raises(errors.SecretKeyError) as caught:
        Keyring([OTHER], source="secret.key").open(envelope, "a", "community")
    assert vault.key_id(KEY) in caught.value.message
    assert vault.key_id(OTHER) in caught.value.cause
    assert "secret.key" in caught.value.cause


def test_the_first_key_seals_and_all_open() -> None:
    """Rotation in two steps: put the new key first, keep the old one behind it."""
    old = Keyring([KEY]).seal("public", "a", "community")
    ring = Keyring([OTHER, KEY])
    assert ring.open(old, "a", "community") == "public"
    assert vault.sealed_with(ring.seal("public", "a", "community")) == vault.key_id(OTHER)


@pytest.mark.parametrize("envelope", ["", "v1", "v1:aa", "v3:aa:bbbb", "v1:aa:%%%", "v1:aa:AAAA"])
def test_a_damaged_envelope_is_refused_by_name(envelope: str) -> None:
    """The error names the credential of the row."""
    with pytest.raises(errors.SecretKeyError, match='"a"'):
        Keyring([KEY]).open(envelope, "a", "community")


@given(st.integers(min_value=0, max_value=43))
def test_every_altered_byte_is_detected(position: int) -> None:
    """The encryption is authenticated."""
    ring = Keyring([KEY])
    version, key, text = ring.seal("sixteen letters!", "a", "community").split(":")
    blob = bytearray(base64.b64decode(text))
    blob[position] ^= 1
    with pytest.raises(errors.SecretKeyError):
        ring.open(f"{version}:{key}:{base64.b64encode(blob).decode()}", "a", "community")


def test_nothing_prints_a_key_or_a_secret() -> None:
    """Neither the ring nor an error shows more than key ids."""
    ring = Keyring([KEY])
    envelope = ring.seal("correct horse", "a", "community")
    shown = repr(ring) + str(ring.__dict__)
    with pytest.raises(errors.SecretKeyError) as caught:
        ring.open(envelope, "b", "community")
    shown += repr(caught.value)
    assert "correct horse" not in shown
    assert base64.b64encode(KEY).decode() not in shown
    assert KEY.hex() not in shown


def test_a_key_file_is_created_once_and_private(tmp_path: Path) -> None:
    """A second start reads the key of the first."""
    first, second = Keyring.load(None, tmp_path / "home"), Keyring.load(None, tmp_path / "home")
    assert first.ids == second.ids
    assert (tmp_path / "home" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["secret.key"]


def test_a_key_that_was_rotated_by_another_process_is_found(tmp_path: Path) -> None:
    """A running worker need not be restarted for a new key."""
    running = Keyring.load(None, tmp_path)
    path = tmp_path / "secret.key"
    vault_keys.replace(path, [OTHER, *vault_keys.read(path)])
    assert (
        running.open(Keyring([OTHER]).seal("public", "a", "community"), "a", "community")
        == "public"
    )


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """With POLLER_SECRET_KEY no key file is created."""
    text = base64.b64encode(KEY).decode()
    ring = Keyring.load(f"{text},{base64.b64encode(OTHER).decode()}", tmp_path)
    assert ring.ids == (vault.key_id(KEY), vault.key_id(OTHER))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [("not base64!", "not valid base64"), ("YWJj", "3 bytes"), (" , ", "contains no key")],
)
def test_the_error_of_a_bad_key_names_its_source_and_not_the_key(
    text: str, reason: str, tmp_path: Path
) -> None:
    """The error message contains no part of the key."""
    with pytest.raises(errors.SecretKeyError, match=reason) as caught:
        Keyring.load(text, tmp_path)
    assert "POLLER_SECRET_KEY" in caught.value.message
    assert "YWJj" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The error gives the command that repairs it."""
    path = tmp_path / "secret.key"
    vault_keys.create(path)
    path.chmod(mode)
    with pytest.raises(errors.SecretKeyError, match=f"{mode:04o}") as caught:
        Keyring.load(None, tmp_path)
    assert caught.value.hint == f"chmod 600 {path}"


def test_two_first_starts_agree_on_one_key(tmp_path: Path) -> None:
    """The second process uses the key of the first."""
    path = tmp_path / "secret.key"
    vault_keys.create(path)
    before = path.read_bytes()
    vault_keys.create(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["secret.key"]


@pytest.mark.parametrize("byte", [0, 7, 255])
def test_a_key_of_equal_bytes_is_refused(byte: int) -> None:
    """`head -c 32 /dev/zero | base64` is no secret."""
    text = base64.b64encode(bytes([byte]) * 32).decode()
    with pytest.raises(errors.SecretKeyError, match="all the same") as refused:
        vault_keys.parse(text, "POLLER_SECRET_KEY")
    assert text not in str(refused.value)
