"""Where to write, and how much? From the environment; POLLER_* names are the platform's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poller import errors

MOST_BYTES, KEEP = 100_000_000, 5


@dataclass(frozen=True, slots=True)
class Config:
    path: Path
    most_bytes: int
    keep: int


def read(home: Path, environ: Mapping[str, str] = os.environ) -> Config:
    """Raises InvalidSetting, naming the variable: the worker does not start then."""
    return Config(
        Path(environ.get("JSONLINES_FILE") or home / "readings.jsonl").expanduser().absolute(),
        _number(environ, "JSONLINES_MAX_BYTES", MOST_BYTES, least=1000),
        _number(environ, "JSONLINES_KEEP", KEEP, least=0),
    )


def _number(environ: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise errors.InvalidSetting(
            f'{name}: "{text}" is no whole number from {least} on', hint=f"{name}={default}"
        )
    return int(text)
