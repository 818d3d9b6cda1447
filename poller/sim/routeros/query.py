"""The query words of `print`: a small stack language that filters rows.

Every test pushes a boolean, and `?#` words operate on the stack. A row matches if no false value is
left on the stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

Lookup = Callable[[str], str | None]
Stack = list[bool]

_OPERATIONS = re.compile(r"[0-9]+|[!&|.]")
_TRUTH = {"yes": "true", "no": "false"}  # both spellings of a boolean
_DEEPEST = 1000  # every index beyond the stack is true


class BadQuery(ValueError):
    """A query word that is not valid. The text is the message of the router."""


def check(words: Iterable[str]) -> None:
    """Check the operations of query words. Raises BadQuery."""
    for word in words:
        if word.startswith("#"):
            _operations(word[1:])


def matches(words: Iterable[str], value: Lookup) -> bool:
    """Return whether a row matches query words, which are given without their question mark."""
    stack: Stack = []
    for word in words:
        if word.startswith("#"):
            stack = _operated(_operations(word[1:]), stack)
        else:
            stack.append(_test(word, value))
    return all(stack)


def _test(word: str, value: Lookup) -> bool:
    if word[:1] in ("<", ">"):
        name, _, expected = word[1:].partition("=")
        return _compare(word[0], value(name), expected)
    if word.startswith("-"):
        return value(word[1:]) is None
    name, equals, expected = word.removeprefix("=").partition("=")
    return _equal(value(name), expected) if equals else value(name) is not None


def _equal(actual: str | None, expected: str) -> bool:
    return actual == expected or (expected in _TRUTH and actual == _TRUTH[expected])


def _compare(sign: str, actual: str | None, expected: str) -> bool:
    if actual is None:
        return False
    try:
        left, right = int(actual), int(expected)
    except ValueError:
        return actual < expected if sign == "<" else actual > expected
    return left < right if sign == "<" else left > right


def _operations(text: str) -> Sequence[str]:
    """Split a `?#` word into indexes and single characters. Raises BadQuery."""
    operations = _OPERATIONS.findall(text)
    if "".join(operations) != text:
        raise BadQuery("unknown query operation")
    return operations


def _operated(operations: Sequence[str], stack: Stack) -> Stack:
    stack = list(stack)
    for at, operation in enumerate(operations):
        if operation.isdigit():
            value = _peek(stack, min(int(operation[:5]), _DEEPEST))
            if at + 1 == len(operations):  # an index at the end replaces the stack
                return [value]
            stack.append(value)
        elif operation == ".":
            # After an index, a dot only ends the number.
            if at == 0 or not operations[at - 1].isdigit():
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
    """Remove the top of the stack. An empty stack yields True."""
    return stack.pop() if stack else True
