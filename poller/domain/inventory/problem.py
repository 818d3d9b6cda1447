"""One thing that is wrong with one field of what somebody asks to be stored."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    field: str
    message: str
    hint: str = ""
