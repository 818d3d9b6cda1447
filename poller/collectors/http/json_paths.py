"""Numbers out of a JSON document: `data.nodes[0].cpu`, `["odd.key"].load`. Nothing is guessed."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

Step = str | int

_STEP = re.compile(r"""\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(-?[0-9]{1,9})\]|\["([^"]+)"\]""")
_TRUTH = {True: 1.0, False: 0.0}


class NotThere(LookupError):
    """The document has no number at that place; the text says why."""


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[Step, ...]:
    """Raises ValueError."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if not found or (at == 0 and path.startswith(".")):
            raise ValueError(
                f'"{path}" is no path; write data.nodes[0].cpu, odd keys as ["odd.key"]'
            )
        key, index, quoted = found.groups()
        steps.append(int(index) if index is not None else key or quoted)
        at = found.end()
    if not steps:
        raise ValueError("a path is empty")
    return tuple(steps)


def number(document: Any, path: str) -> float:
    """The number at that place; true is 1, false is 0, and a text may be a number. Raises NotThere."""
    found = document
    for step in parse(path):
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            raise NotThere(f"{path} is not in the answer") from None
    return _as_number(found, path)


def _as_number(found: Any, path: str) -> float:
    if isinstance(found, bool):
        return _TRUTH[found]
    if isinstance(found, int | float | str):
        try:
            value = float(found)
        except (ValueError, OverflowError):
            value = math.nan
        if math.isfinite(value):
            return value
    raise NotThere(f"{path} is no number but {_kind(found)}")


def _kind(found: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return names.get(type(found), "none that can be stored")
