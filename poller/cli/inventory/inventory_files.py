"""Inventories as files: CSV, JSON or YAML. A written file is read back unchanged.

Reading checks the form of a file only, and keeps the line of every field for problem reports.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from poller import errors
from poller.cli.inventory import csv_form, tree_form, value_limits
from poller.cli.inventory.inventory_rows import ExportedDevices, ParsedFile, unreadable

#: The path that stands for standard input.
STDIN = "-"
FORMS = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}

_READERS = {"csv": csv_form.read, "json": tree_form.read_json, "yaml": tree_form.read_yaml}
_WRITERS = {"json": tree_form.write_json, "yaml": tree_form.write_yaml}
_FORMAT_HINT = "add --format csv, json or yaml"


def form_of(path: Path) -> str:
    """csv, json or yaml, by the file's name. Raises InvalidInput."""
    if str(path) == STDIN:
        raise errors.InvalidInput("stdin has no name to tell its format by", hint=_FORMAT_HINT)

    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise errors.InvalidInput(
            f'cannot tell the format of "{path.name}" by its name', hint=_FORMAT_HINT
        )

    return form


def read(path: Path, form: str | None = None) -> ParsedFile:
    """Every device of a file. Raises BadFile if the file cannot be parsed at all."""
    reader = _READERS[form or form_of(path)]
    name = display_name(path)

    try:
        parsed = reader(_bytes(path).decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise unreadable(name, line, f"not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        hint = "name a file you may read; poller device export --format csv shows the form"
        raise errors.InvalidInput(f"cannot read {path}", error.strerror or "", hint) from None

    for device in parsed.devices:
        parsed.problems.extend(value_limits.drop_unusable(device, name))
    return parsed


def display_name(path: Path) -> str:
    """The file's name in problem reports."""
    return "stdin" if str(path) == STDIN else path.name


def _bytes(path: Path) -> bytes:
    """The content of the file, or of stdin. Raises InvalidInput for more than an inventory has."""
    most = value_limits.MAX_BYTES
    if str(path) != STDIN:
        with path.open("rb") as file:
            content = file.read(most + 1)
    else:
        binary = getattr(sys.stdin, "buffer", None)
        content = binary.read(most + 1) if binary else sys.stdin.read(most + 1).encode()

    if len(content) > most:
        raise errors.InvalidInput(
            f"{display_name(path)} has more than {most:,} bytes", hint="import it in parts"
        )
    return content


def write(file: TextIO, form: str, devices: ExportedDevices, raw: bool = False) -> int:
    """Write in a form that `read` accepts; `raw` is for CSV. Returns the number of devices."""
    if form == "csv":
        return csv_form.write(file, devices, raw)
    return _WRITERS[form](file, devices)
