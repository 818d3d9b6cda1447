"""Cells of a CSV file that no spreadsheet takes for a formula, read back without loss.

A spreadsheet calculates a cell that begins with `=`, `+`, `-` or `@`; an apostrophe before it makes
it a text. To read the cell back, one apostrophe before such a character is removed. A text that has
apostrophes there of its own therefore gets one more, in a raw file as well.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

#: The ASCII characters, their full-width forms, and blanks that spreadsheets skip.
_FORMULA = r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]"
_LIKE_FORMULA = re.compile(f"'*{_FORMULA}")
_QUOTED = re.compile(f"'+{_FORMULA}")


def written(text: str, raw: bool = False) -> str:
    """The cell of a text; a raw one may be a formula."""
    needs_quote = _QUOTED if raw else _LIKE_FORMULA
    return f"'{text}" if needs_quote.match(text) else text


def line(texts: Sequence[str]) -> str:
    """The line of a CSV file with these cells, and its end."""
    text = io.StringIO()
    csv.writer(text).writerow([written(each) for each in texts])
    return text.getvalue()


def read(cell: str) -> str:
    """The text of a cell, written raw or not."""
    return cell[1:] if _QUOTED.match(cell) else cell
