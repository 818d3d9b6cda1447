"""Inventories as files: CSV, JSON or YAML. What is written here is read back unchanged.

Reading keeps the line of every device and field, so that each complaint can say where; it judges form only.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from poller import errors
from poller.cli.inventory import csv_form, tree_form
from poller.cli.inventory.inventory_rows import Exported, Read, broken

#: A path that means: read what is piped in.
STDIN = "-"
FORMS = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}

_READERS = {"csv": csv_form.read, "json": tree_form.read_json, "yaml": tree_form.read_yaml}
_WRITERS = {"csv": csv_form.write, "json": tree_form.write_json, "yaml": tree_form.write_yaml}


def form_of(path: Path) -> str:
    """csv, json or yaml, by the file's name."""
    if str(path) == STDIN:
        raise errors.InvalidInput(
            "stdin has no name to tell its format by", hint="add --format csv, json or yaml"
        )
    if path.suffix.lower() in FORMS:
        return FORMS[path.suffix.lower()]
    raise errors.InvalidInput(
        f'cannot tell the format of "{path.name}" by its name',
        hint="add --format csv, json or yaml",
    )


def read(path: Path, form: str | None = None) -> Read:
    """Every device of a file. Raises BadFile when it is not of its form at all."""
    reader = _READERS[form or form_of(path)]
    try:
        return reader(_bytes(path).decode("utf-8-sig"), name_of(path))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise broken(name_of(path), line, f"not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        hint = "name a file you may read; poller device export --format csv shows the form"
        raise errors.InvalidInput(f"cannot read {path}", error.strerror or "", hint) from None


def name_of(path: Path) -> str:
    """What complaints call it."""
    return "stdin" if str(path) == STDIN else path.name


def _bytes(path: Path) -> bytes:
    if str(path) != STDIN:
        return path.read_bytes()
    binary = getattr(sys.stdin, "buffer", None)
    return binary.read() if binary else sys.stdin.read().encode()


def write(file: TextIO, form: str, devices: Exported) -> int:
    """Write in a form that `read` gives back unchanged; returns how many devices."""
    return _WRITERS[form](file, devices)
