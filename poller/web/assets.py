"""The static files of the pages. Their names contain a hash of the content, so that a browser can
cache them forever. Parts are joined into few files, because each file is a request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: The files that are joined from parts, in this order. Parts of a script share one scope.
BUNDLES: Mapping[str, Sequence[str]] = {
    "style.css": (
        "style/tokens.css",
        "style/base.css",
        "style/frame.css",
        "style/overview.css",
        "style/plots.css",
        "style/tables.css",
        "style/device.css",
        "style/devices.css",
        "style/alerts.css",
        "style/wall.css",
        "style/work.css",
        "style/platform.css",
        "style/accounts.css",
        "style/inventory.css",
        "style/screens.css",
    ),
    "frame.js": (
        "script/preferences.js",
        "script/cells.js",
        "script/rows.js",
        "script/stream.js",
        "script/live.js",
        "script/region.js",
        "script/copy.js",
        "script/file.js",
        "script/keys.js",
        "script/search.js",
        "script/slots.js",
        "script/start.js",
    ),
    "plots.js": (
        "script/plot_text.js",
        "script/plot_draw.js",
        "script/plot_moves.js",
        "script/plots.js",
    ),
    "stream-worker.js": ("script/stream.js", "script/shared_stream.js"),
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
    """Read all files of the static directory. Files beside the rooms of parts are served as they
    are.
    """
    directory = resources.files("poller.web").joinpath("static")
    by_name = {name: _asset(name, body) for name, body in _files(directory)}
    by_path = {asset.path: asset for asset in by_name.values()}
    paths = "".join(by_path)
    return Assets(by_name, by_path, build=_digest(paths.encode()))


def _files(directory: Traversable) -> Iterator[tuple[str, bytes]]:
    for file in sorted(directory.iterdir(), key=lambda file: file.name):
        if file.is_file():
            yield file.name, file.read_bytes()
    for name, parts in BUNDLES.items():
        yield name, b"\n".join(directory.joinpath(part).read_bytes() for part in parts)


def _asset(name: str, body: bytes) -> Asset:
    stem, _, extension = name.rpartition(".")
    path = f"{stem}-{_digest(body)}.{extension}"
    return Asset(path, body, TYPES[extension])


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=6).hexdigest()
