"""Which rows does a print with query words keep? The API's little stack language.

Every test pushes a truth value; `?#` words work on what is on the stack. A row is kept when nothing false is left. An
unknown operation is the client's mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

Lookup = Callable[[str], str | None]
Stack = list[bool]

_OPERATIONS = re.compile(r"[0-9]+|[!&|.]")
_TRUTH = {"yes": "true", "no": "false"}  # two ways to write each
_DEEPEST = 1000  # an index beyond it finds the endless supply just as well


class BadQuery(ValueError):
    """A query word that cannot be understood; the text is what the router says about it."""


def check(words: Iterable[str]) -> None:
    """Raises BadQuery when there is an operation nobody knows."""
    for word in words:
        if word.startswith("#"):
            _operations(word[1:])


def matches(words: Iterable[str], value: Lookup) -> bool:
    """Apply query words (without their question mark) to a row, given by its values."""
    stack: Stack = []
    for word in words:
        if word.startswith("#"):
            stack = _operated(_operations(word[1:]), stack)
        else:
            stack.append(_test(word, value))
    return all(stack)


def _test(word: str, value: Lookup) -> bool:
    if word[:1] in ("<", ">"):
        name, _, wanted = word[1:].partition("=")
        return _compare(word[0], value(name), wanted)
    if word.startswith("-"):
        return value(word[1:]) is None
    name, equals, wanted = word.removeprefix("=").partition("=")
    return _equal(value(name), wanted) if equals else value(name) is not None


def _equal(found: str | None, wanted: str) -> bool:
    return found == wanted or (wanted in _TRUTH and found == _TRUTH[wanted])


def _compare(sign: str, found: str | None, wanted: str) -> bool:
    if found is None:
        return False
    try:
        left, right = int(found), int(wanted)
    except ValueError:
        return found < wanted if sign == "<" else found > wanted
    return left < right if sign == "<" else left > right


def _operations(text: str) -> Sequence[str]:
    """An index, or a character, at a time."""
    found = _OPERATIONS.findall(text)
    if "".join(found) != text:
        raise BadQuery("unknown query operation")
    return found


def _operated(operations: Sequence[str], stack: Stack) -> Stack:
    stack = list(stack)
    for at, operation in enumerate(operations):
        if operation.isdigit():
            value = _peek(stack, min(int(operation[:5]), _DEEPEST))
            if at + 1 == len(operations):  # an index at the end stands for everything
                return [value]
            stack.append(value)
        elif operation == ".":
            if (
                at == 0 or not operations[at - 1].isdigit()
            ):  # after an index it only ends the number
                stack.append(_peek(stack, 0))
        else:
            _combine(operation, stack)
    return stack


def _combine(operation: str, stack: Stack) -> None:
    right = _pop(stack)
    if operation == "!":
        stack.append(not right)
        return
    left = _pop(stack)
    stack.append(left and right if operation == "&" else left or right)


def _peek(stack: Stack, index: int) -> bool:
    return stack[-1 - index] if index < len(stack) else True


def _pop(stack: Stack) -> bool:
    """Below the first value lies an endless supply of true ones."""
    return stack.pop() if stack else True
