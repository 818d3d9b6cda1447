"""Reads numbers from a JSON document by path: `data.nodes[0].cpu`, `["odd.key"].load`."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

Step = str | int

_STEP = re.compile(r"""\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(-?[0-9]{1,9})\]|\["([^"]+)"\]""")
_TYPE_NAMES = {dict: "an object", list: "a list", str: "a text", type(None): "null"}


class NotThere(LookupError):
    """The document has no number at that path."""


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[Step, ...]:
    """Return the keys and indexes of a path. Raises ValueError."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if not match or (at == 0 and path.startswith(".")):
            raise ValueError(
                f'"{path}" is no path; write data.nodes[0].cpu, odd keys as ["odd.key"]'
            )
        key, index, quoted = match.groups()
        steps.append(int(index) if index is not None else key or quoted)
        at = match.end()
    if not steps:
        raise ValueError("a path is empty")
    return tuple(steps)


def number(document: Any, path: str) -> float:
    """Return the number at a path. Raises NotThere.

    True is 1, false is 0, and the text of a number is the number.
    """
    value = document
    for step in parse(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise NotThere(f"{path} is not in the answer") from None
    converted = _as_number(value)
    if converted is None:
        kind = _TYPE_NAMES.get(type(value), "none that can be stored")
        raise NotThere(f"{path} is no number but {kind}")
    return converted


def _as_number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):  # a bool is an int
        return None
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return None
    return converted if math.isfinite(converted) else None
