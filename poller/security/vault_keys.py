"""Keys of the vault: from `POLLER_SECRET_KEY`, or from a private file created at first use."""

from __future__ import annotations

import base64
import binascii
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from poller import errors

KEY_BYTES = 32
FILE_NAME = "secret.key"
ENVIRONMENT = "POLLER_SECRET_KEY"

RIGHT_KEY_HINT = "use the right key, or put it behind the new one: POLLER_SECRET_KEY=NEW,OLD"

_HINT = "make one with: openssl rand -base64 32"


def new() -> bytes:
    """A random key."""
    return os.urandom(KEY_BYTES)


def parse(text: str, source: str) -> list[bytes]:
    """Base64 keys, separated by commas or lines. An error names `source`, never the text."""
    words = text.replace(",", " ").split()
    if not words:
        raise errors.SecretKeyError(f"{source} contains no key", hint=_HINT)

    return [_decoded(word, source) for word in words]


def read(path: Path) -> list[bytes]:
    """The keys of a file. Raises SecretKeyError if other users may read the file."""
    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except OSError as error:
        raise errors.SecretKeyError(
            f"cannot read the key file {path}", cause=error.strerror or ""
        ) from None
    except UnicodeDecodeError:
        raise errors.SecretKeyError(f"{path} is not a key file", hint=_HINT) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise errors.SecretKeyError(
            f"the key file {path} can be used by others (mode {stat.S_IMODE(mode):04o})",
            hint=f"chmod 600 {path}",
        )
    return parse(text, str(path))


def create(path: Path) -> None:
    """Write a first key. If several processes do so at once, one wins and all use its key."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = _written(path, [new()])
    try:
        os.link(scratch, path)  # unlike a rename, this fails when the file is there already
    except FileExistsError:
        pass
    finally:
        scratch.unlink()


def replace(path: Path, keys: Sequence[bytes]) -> None:
    """Replace the keys of the file atomically."""
    complete = _written(path, keys)
    complete.rename(path)


def _written(path: Path, keys: Sequence[bytes]) -> Path:
    """A complete temporary file in the same directory, with mode 0600 (by mkstemp)."""
    handle, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        for key in keys:
            file.write(base64.b64encode(key) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def _decoded(word: str, source: str) -> bytes:
    try:
        key = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        raise errors.SecretKeyError(f"{source} is not valid base64", hint=_HINT) from None
    if len(key) != KEY_BYTES:
        raise errors.SecretKeyError(
            f"{source} has a key of {len(key)} bytes, it must have {KEY_BYTES}", hint=_HINT
        )
    if len(set(key)) == 1:
        raise errors.SecretKeyError(
            f"{source} has a key whose bytes are all the same, which can be guessed", hint=_HINT
        )
    return key
