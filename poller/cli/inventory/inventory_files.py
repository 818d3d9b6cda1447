"""Inventory files of the command line: a path or stdin, and the form that a name tells."""

from __future__ import annotations

import sys
from pathlib import Path

from poller import errors
from poller.service.inventory_forms import file_forms, value_limits
from poller.service.inventory_forms.file_forms import Form
from poller.service.inventory_forms.inventory_rows import ParsedFile

#: The path that stands for standard input.
STDIN = "-"
FORMS: dict[str, Form] = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}

_FORMAT_HINT = "add --format csv, json or yaml"


def form_of(path: Path) -> Form:
    """csv, json or yaml, by the file's name. Raises InvalidInput."""
    if str(path) == STDIN:
        raise errors.InvalidInput("stdin has no name to tell its format by", hint=_FORMAT_HINT)

    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise errors.InvalidInput(
            f'cannot tell the format of "{path.name}" by its name', hint=_FORMAT_HINT
        )

    return form


def read(path: Path, form: Form | None = None) -> ParsedFile:
    """Every device of a file. Raises BadFile if the file cannot be parsed at all."""
    chosen = form or form_of(path)
    return file_forms.read(content(path), chosen, display_name(path))


def display_name(path: Path) -> str:
    """The file's name in problem reports."""
    return "stdin" if str(path) == STDIN else path.name


def content(path: Path) -> bytes:
    """The bytes of the file, or of stdin: at most one more than an inventory may have."""
    most = value_limits.MAX_BYTES + 1
    if str(path) == STDIN:
        binary = getattr(sys.stdin, "buffer", None)
        return binary.read(most) if binary else sys.stdin.read(most).encode()

    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        hint = "name a file you may read; poller device export --format csv shows the form"
        raise errors.InvalidInput(f"cannot read {path}", error.strerror or "", hint) from None
