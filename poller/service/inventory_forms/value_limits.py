"""Limits of values in an inventory file, whatever its form: size, depth, and storable texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from poller import errors
from poller.service.inventory_forms.inventory_rows import LineProblem, RawRow

#: Several times the size of 100,000 devices with five targets each.
MAX_BYTES = 200_000_000
#: Values of a file, with YAML's aliases expanded.
MAX_VALUES = 10_000_000
#: Rows of a file in a request, which shares its process with others: 100,000 devices with five
#: targets each. A row takes up to 4 KB of memory.
MAX_REQUEST_ROWS = 600_000
#: Values of one field, such as the options of a target.
MAX_FIELD_VALUES = 10_000

#: Levels of nesting in one field, as in a module file.
MAX_DEPTH = 32

_TOO_DEEP = f"more than {MAX_DEPTH} levels"
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def load_json(text: str) -> Any:
    """Parse JSON. Raises InvalidInput for values that no inventory has, else JSONDecodeError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise errors.InvalidInput("nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise errors.InvalidInput("a number has thousands of digits") from None


def _refuse_constant(name: str) -> None:
    raise errors.InvalidInput(f"{name} is not a number that can be stored")


def drop_unusable(row: RawRow, file: str) -> Iterator[LineProblem]:
    """Remove fields of a device and its targets that cannot be checked, and report each."""
    for name, value in list(row.fields.items()):
        unusable = objection(value)
        if unusable:
            del row.fields[name]
            yield row.problem(file, str(name)[:40], unusable)
    for target in row.targets:
        yield from drop_unusable(target, file)


def objection(value: Any) -> str:
    """Why a value cannot be stored; "" if it can."""
    if value is None or isinstance(value, bool | int):
        return ""
    if isinstance(value, str):
        return _text_objection(value)

    for count, (depth, item) in enumerate(_values(value, 1), 1):
        if depth > MAX_DEPTH:
            return _TOO_DEEP
        if count > MAX_FIELD_VALUES:
            return f"more than {MAX_FIELD_VALUES:,} values"
        if isinstance(item, str) and _text_objection(item):
            return _text_objection(item)
        if isinstance(item, float) and not math.isfinite(item):
            return f"{item} is not a number that can be stored"
    return ""


def _values(value: Any, depth: int) -> Iterator[tuple[int, Any]]:
    """Every value inside a value, keys included, with its depth. Nothing below MAX_DEPTH."""
    yield depth, value
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield depth, key
            yield from _values(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, depth + 1)


def _text_objection(text: str) -> str:
    if "\0" in text:
        return "a NUL character cannot be stored"
    if not text.isascii() and _HALF_CHARACTER.search(text):
        return "half a character (a surrogate) cannot be stored"
    return ""
