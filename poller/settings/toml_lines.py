"""The lines of a poller.toml that its keys begin on, for people who look for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_KEY = re.compile(r"\s*[\"']?([A-Za-z0-9_-]+)[\"']?\s*[.=]")
_TABLE = re.compile(r"\s*\[{1,2}\s*[\"']?([A-Za-z0-9_-]+)[^\]]*\]{1,2}\s*(#.*)?$")


def of_file(path: Path) -> Mapping[str, int]:
    """Return the first line of each key at the top of a file; none if it cannot be read."""
    try:
        return first_lines(path.read_text())
    except (OSError, ValueError):
        return {}


def first_lines(text: str) -> dict[str, int]:
    """Return the first line of each key; for a key that is a table, of its first header."""
    found: dict[str, int] = {}
    is_in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        header = _TABLE.match(line)
        is_in_table = is_in_table or header is not None
        named = header if is_in_table else _KEY.match(line)
        if named is not None:
            found.setdefault(named[1], number)
    return found
