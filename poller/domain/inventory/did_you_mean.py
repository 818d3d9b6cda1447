"""Which of these names did somebody mean? One that differs in zeros and case, else in the fewest letters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from itertools import takewhile

_NUMBER = re.compile(r"0*(\d+)")
#: So many similar ones are looked at closely: of numbered names, many are equally similar.
_CLOSE = 50


def nearest(name: str, known: Collection[str]) -> str | None:
    """None when nothing is similar."""
    same = [each for each in known if _spelled(each) == _spelled(name)]
    close = same or difflib.get_close_matches(name, known, n=_CLOSE)
    return min(
        close,
        key=lambda each: (_typing_errors(name, each), -_common(name, each), each),
        default=None,
    )


def _spelled(name: str) -> str:
    """`SW-0012` and `sw-12` are one."""
    return _NUMBER.sub(r"\1", name.casefold())


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _typing_errors(one: str, other: str) -> int:
    """Letters to add, to leave out or to replace."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for place, wanted in enumerate(other, 1):
            line.append(min(line[-1] + 1, above[place] + 1, above[place - 1] + (letter != wanted)))
        above = line
    return above[-1]
