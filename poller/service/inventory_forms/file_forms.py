"""The forms of an inventory file: CSV, JSON or YAML. A written file is read back unchanged.

Reading checks the form of a file only, and keeps the line of every field for problem reports.
"""

from __future__ import annotations

import re
from typing import Literal, TextIO

from poller import errors
from poller.service.inventory_forms import csv_form, tree_form, value_limits
from poller.service.inventory_forms.inventory_rows import ExportedDevices, ParsedFile, unreadable

Form = Literal["csv", "json", "yaml"]

_YAML_LINE = re.compile(r"-(--)?(\s|$)|[\w\"']+:(\s|$)")
_READERS = {"csv": csv_form.read, "json": tree_form.read_json, "yaml": tree_form.read_yaml}
_WRITERS = {"json": tree_form.write_json, "yaml": tree_form.write_yaml}


def guess(text: str) -> Form:
    """Return the form that a text seems to have, where no name of a file tells it."""
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith(("[", "{")):
        return "json"
    lines = (line for line in start.splitlines() if line.strip() and not line.startswith("#"))
    return "yaml" if _YAML_LINE.match(next(lines, "")) else "csv"


def read(content: bytes, form: Form, name: str) -> ParsedFile:
    """Return every device of a file; problem reports call it by this name.

    Raises BadFile if the file cannot be parsed at all, InvalidInput if it is too large.
    """
    if len(content) > value_limits.MAX_BYTES:
        raise errors.InvalidInput(
            f"{name} has more than {value_limits.MAX_BYTES:,} bytes", hint="import it in parts"
        )
    try:
        parsed = _READERS[form](content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise unreadable(name, line, f"not UTF-8 text (byte {error.start})") from None

    for device in parsed.devices:
        parsed.problems.extend(value_limits.drop_unusable(device, name))
    return parsed


def refuse_many_rows(content: bytes, form: Form, most: int) -> None:
    """Raise InvalidInput for a file with more rows, before it is parsed.

    A row is a line or, in JSON, an object.
    """
    mark = b"{" if form == "json" else b"\n"
    if content.count(mark) > most:
        raise errors.InvalidInput(
            f"the file has more than {most:,} rows", hint="import it in parts, or by command"
        )


def write(file: TextIO, form: Form, devices: ExportedDevices, raw: bool = False) -> int:
    """Write in a form that `read` accepts; `raw` is for CSV. Returns the number of devices."""
    if form == "csv":
        return csv_form.write(file, devices, raw)
    return _WRITERS[form](file, devices)
