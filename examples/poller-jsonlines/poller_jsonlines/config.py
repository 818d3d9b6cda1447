"""The configuration of the sink, from environment variables.

The names do not begin with POLLER_, because those belong to the platform.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poller import errors

DEFAULT_MAX_BYTES = 100_000_000
DEFAULT_BACKUP_COUNT = 5


@dataclass(frozen=True, slots=True)
class Config:
    """The file to write, its maximum size, and the number of rotated files to keep."""

    path: Path
    max_bytes: int
    backup_count: int


def read(home: Path, environ: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration.

    Raises InvalidSetting with the name of the wrong variable. The worker then does not start.
    """
    path = Path(environ.get("JSONLINES_FILE") or home / "readings.jsonl")
    return Config(
        path=path.expanduser().absolute(),
        max_bytes=_integer(environ, "JSONLINES_MAX_BYTES", DEFAULT_MAX_BYTES, minimum=1000),
        backup_count=_integer(environ, "JSONLINES_KEEP", DEFAULT_BACKUP_COUNT, minimum=0),
    )


def _integer(environ: Mapping[str, str], name: str, default: int, minimum: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < minimum:
        raise errors.InvalidSetting(
            f'{name}: "{text}" is not a whole number of at least {minimum}',
            hint=f"{name}={default}",
        )
    return int(text)
