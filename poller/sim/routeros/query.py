"""Which rows does a print with query words keep? The API's little stack language.

Every test pushes a truth value; `?#` words combine what is on the stack. A row is kept when nothing false
is left. An unknown operation is the client's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Lookup = Callable[[str], str | None]


class BadQuery(ValueError):
    """A query word that cannot be understood; the text is what the router says about it."""


def matches(words: Iterable[str], value: Lookup) -> bool:
    """Apply query words (without their question mark) to a row, given by its values."""
    stack: list[bool] = []
    for word in words:
        if word.startswith("#"):
            for operation in word[1:]:
                _operate(operation, stack)
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
    return value(name) == wanted if equals else value(name) is not None


def _compare(sign: str, found: str | None, wanted: str) -> bool:
    if found is None:
        return False
    try:
        left, right = int(found), int(wanted)
    except ValueError:
        return found < wanted if sign == "<" else found > wanted
    return left < right if sign == "<" else left > right


def _operate(operation: str, stack: list[bool]) -> None:
    if operation == "!":
        stack.append(not _pop(stack))
    elif operation == "&":
        right, left = _pop(stack), _pop(stack)
        stack.append(left and right)
    elif operation == "|":
        right, left = _pop(stack), _pop(stack)
        stack.append(left or right)
    else:
        raise BadQuery("unknown query operation")


def _pop(stack: list[bool]) -> bool:
    """Below the first value lies an endless supply of true ones."""
    return stack.pop() if stack else True
