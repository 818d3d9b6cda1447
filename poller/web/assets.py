"""The static files of the pages. Their names contain a hash of the content, so that a browser can
cache them forever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    path: str  # below /static/, contains the hash
    body: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Assets:
    """The files by name for the templates and by path for the server. `build` changes when any file
    changes.
    """

    by_name: Mapping[str, Asset]
    by_path: Mapping[str, Asset]
    build: str


def load() -> Assets:
    """Read all files of the static directory."""
    directory = resources.files("poller.web").joinpath("static")
    by_name: dict[str, Asset] = {}
    for file in sorted(directory.iterdir(), key=lambda file: file.name):
        by_name[file.name] = _asset(file.name, file.read_bytes())

    by_path = {asset.path: asset for asset in by_name.values()}
    paths = "".join(by_path)
    return Assets(by_name, by_path, build=_digest(paths.encode()))


def _asset(name: str, body: bytes) -> Asset:
    stem, _, extension = name.rpartition(".")
    path = f"{stem}-{_digest(body)}.{extension}"
    return Asset(path, body, TYPES[extension])


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=6).hexdigest()
