"""The details of a run as a small JSON object: a handler may return anything."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from typing import Any

#: Size of the details as UTF-8 JSON.
LIMIT_BYTES = 16 * 1024
#: The key of the note on details that were left out or shortened.
CUT = "_cut"
_DEEPEST = 16
_NOTE_BYTES = 200
_LARGEST_INT = 2**63
_SHORT = 100


def storable(details: Any) -> dict[str, Any]:
    """Return the details as an object that every database stores. Never raises.

    Values that JSON does not have become text. Details beyond the limit are left out, a long text
    is shortened, and a note under `_cut` says so.
    """
    try:
        return _Document(LIMIT_BYTES - _NOTE_BYTES).take(details)
    except (Exception, SystemExit) as error:  # noqa: BLE001  door: a handler's own mapping
        return {CUT: f"the details cannot be read: {type(error).__name__}"[:_SHORT]}


class _Document:
    """An object that is filled until its budget is spent."""

    def __init__(self, budget: int) -> None:
        self._left = budget
        self._is_cut = False

    def take(self, details: Any) -> dict[str, Any]:
        value = self._value(details, 0)
        document = value if isinstance(value, dict) else {"value": value}
        if self._is_cut:
            document[CUT] = f"larger than {LIMIT_BYTES} bytes: the rest was left out"
        return document

    def _value(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return self._text("…")
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if isinstance(value, list | tuple | Set):
            return self._list(value, depth)
        return self._scalar(value)

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self._spend(2)
        taken: dict[str, Any] = {}
        for key, item in value.items():
            if self._left <= 0:
                self._is_cut = True
                break
            name = self._text(key if isinstance(key, str) else _shown(key))
            self._spend(4)
            taken[name] = self._value(item, depth + 1)
        return taken

    def _list(self, value: Any, depth: int) -> list[Any]:
        self._spend(2)
        taken: list[Any] = []
        for item in value:
            if self._left <= 0:
                self._is_cut = True
                break
            self._spend(2)
            taken.append(self._value(item, depth + 1))
        return taken

    def _scalar(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            self._spend(5)
            return value
        if type(value) is int and abs(value) < _LARGEST_INT:
            self._spend(len(str(value)))
            return value
        if type(value) is float and math.isfinite(value):
            self._spend(len(repr(value)))
            return value
        return self._text(str(value) if type(value) is str else _shown(value))

    def _text(self, text: str) -> str:
        """The text without characters that a database refuses, as long as the budget lasts."""
        room = max(self._left, 1)
        if len(text) > room:
            self._is_cut = True
        kept = _clean(text[:room])
        size = _size(kept)
        while size > room + 2 and len(kept) > 1:
            # A character is four bytes of UTF-8, or six of JSON's escapes, at most.
            self._is_cut = True
            kept = kept[: max(1, min(len(kept) - 1, len(kept) * room // size))]
            size = _size(kept)
        self._spend(size)
        return kept

    def _spend(self, size: int) -> None:
        self._left -= size


def _clean(text: str) -> str:
    """The text without NUL and halves of surrogate pairs, which PostgreSQL refuses."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())


def _shown(value: Any) -> str:
    """A value of another type as text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST_INT:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, bytes | bytearray):
        return bytes(value[:LIMIT_BYTES]).decode(errors="replace")
    try:
        return str(value)
    except (Exception, SystemExit):  # noqa: BLE001  door: a handler's class may refuse
        return f"<{type(value).__name__}>"
