"""The page's own files, named by their content: a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    path: str  # below /static/, with the hash in it
    body: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Assets:
    """`by_name` for the template, `by_path` for the server; `build` changes when any file does."""

    by_name: Mapping[str, Asset]
    by_path: Mapping[str, Asset]
    build: str


def load() -> Assets:
    """Read all files of the package's static directory, once."""
    files = sorted(
        resources.files("poller.web").joinpath("static").iterdir(), key=lambda file: file.name
    )
    by_name = {file.name: _asset(file.name, file.read_bytes()) for file in files}
    by_path = {asset.path: asset for asset in by_name.values()}
    return Assets(by_name, by_path, _digest("".join(by_path).encode()))


def _asset(name: str, body: bytes) -> Asset:
    stem, dot, suffix = name.rpartition(".")
    return Asset(f"{stem}-{_digest(body)}{dot}{suffix}", body, TYPES[dot + suffix])


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=6).hexdigest()
