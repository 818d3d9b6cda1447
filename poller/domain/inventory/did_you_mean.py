"""The most similar of some names, for the hint of an error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from poller import errors

_NUMBER = re.compile(r"0*(\d+)")
#: Candidates that are compared letter by letter: many numbered names are equally similar.
_CANDIDATES = 50


def refuse_unknown(noun: str, name: str, names: Collection[str], command: str) -> None:
    """Raise NotFound with the nearest name unless `name` is in `names`; `command` lists them."""
    if name in names:
        return
    near = nearest(name, names)
    hint = f"did you mean {near}? (or: {command})" if near else command
    raise errors.NotFound(f'no {noun} named "{name}"', hint=hint)


def nearest(name: str, names: Collection[str]) -> str | None:
    """Return a name that differs in zeros and case only, else in the fewest letters, or None."""

    def distance(candidate: str) -> tuple[int, int, str]:
        return _edits(name, candidate), -_common_prefix(name, candidate), candidate

    folded = _folded(name)
    candidates = [candidate for candidate in names if _folded(candidate) == folded]
    if not candidates:
        candidates = difflib.get_close_matches(name, names, n=_CANDIDATES)
    return min(candidates, key=distance, default=None)


def _folded(name: str) -> str:
    """Return the same text for `SW-0012` and `sw-12`."""
    return _NUMBER.sub(r"\1", name.casefold())


def _common_prefix(one: str, other: str) -> int:
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


def _edits(one: str, other: str) -> int:
    """Return the Levenshtein distance: letters to insert, to delete or to replace."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, expected in enumerate(other, 1):
            replaced = above[column - 1] + (letter != expected)
            line.append(min(line[-1] + 1, above[column] + 1, replaced))
        above = line
    return above[-1]
