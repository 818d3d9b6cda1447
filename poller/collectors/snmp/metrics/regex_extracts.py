"""Numbers out of texts: snmp_exporter's `regex_extracts`, with RE2 and Go's rules for numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import re2

#: `$1`, `${name}` and `$$` of Go's Expand: the longest run of word characters is the name.
_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")
_GROUP_NUMBER = re.compile(r"0|[1-9][0-9]{0,7}", re.ASCII)
#: Texts that Go's ParseFloat accepts, besides words.
_NUMBER = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?", re.ASCII)
_HEX_NUMBER = re.compile(
    r"[+-]?0[xX](\.[0-9a-fA-F]+|[0-9a-fA-F]+(\.[0-9a-fA-F]*)?)[pP][+-]?[0-9]+", re.ASCII
)
_SEPARATOR = re.compile(r"(?<=[0-9])_(?=[0-9])|(?<=0[xX])_(?=[0-9a-fA-F])")
_WORDS = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan"})
_QUIET = re2.Options()
_QUIET.log_errors = False


class BadPattern(ValueError):
    """The pattern is not a regular expression of RE2; the text is RE2's reason."""


def compile_whole(pattern: str) -> Any:
    """Compile an expression that must match a whole text. Raises BadPattern."""
    return compile_anywhere(f"^(?:{pattern})$")


def compile_anywhere(pattern: str) -> Any:
    """Compile an expression that may match a part of a text.

    Raises BadPattern.
    """
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise BadPattern(str(reason)) from None


def extract(text: str, expression: Any, template: str) -> float | None:
    """Return the number the template makes of a match; None without a match or a number."""
    match = expression.search(text)
    if match is None:
        return None
    return parse_float(expand(template, match))


def expand(template: str, match: Any) -> str:
    """Replace the references of a template by groups, as Go's Expand does.

    A group that does not exist is empty, also the group named "1x" in `$1x`.
    """

    def group(reference: re.Match[str]) -> str:
        if reference[1]:
            return "$"
        return _group(match, reference[2] or reference[3])

    return _REFERENCE.sub(group, template)


def _group(match: Any, name: str) -> str:
    """Return a group by number or name; empty for a group that does not exist."""
    number = match.re.groupindex.get(name, -1)
    if _GROUP_NUMBER.fullmatch(name):
        number = int(name)

    if not 0 <= number <= match.re.groups:
        return ""
    return match.group(number) or ""


def parse_float(text: str) -> float | None:
    """Parse a number as Go's ParseFloat does; None for a text or a number it refuses.

    Go takes no blanks, underscores between digits only, and no number out of float64's range.
    """
    if text.lower() in _WORDS:
        return float(text)
    if "_" in text:
        text = _SEPARATOR.sub("", text)
    if _HEX_NUMBER.fullmatch(text):
        return _finite(text, float.fromhex)
    if _NUMBER.fullmatch(text):
        return _finite(text, float)
    return None


def _finite(text: str, parse: Callable[[str], float]) -> float | None:
    """Parse a number; None when it is out of range."""
    try:
        value = parse(text)
    except OverflowError:
        return None

    return value if abs(value) != float("inf") else None
