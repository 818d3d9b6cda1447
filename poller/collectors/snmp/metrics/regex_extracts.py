"""Numbers out of texts: snmp_exporter's `regex_extracts`, by RE2's expressions, and Go's rules for the rest."""

from __future__ import annotations

import re
from typing import Any

import re2

#: `$1`, `${name}` and `$$` of Go's Expand: the longest run of word characters is the name.
_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")
_GROUP_NUMBER = re.compile(r"0|[1-9][0-9]{0,7}", re.ASCII)
#: What Go's ParseFloat takes, besides words.
_NUMBER = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?", re.ASCII)
_HEX_NUMBER = re.compile(
    r"[+-]?0[xX](\.[0-9a-fA-F]+|[0-9a-fA-F]+(\.[0-9a-fA-F]*)?)[pP][+-]?[0-9]+", re.ASCII
)
_SEPARATOR = re.compile(r"(?<=[0-9])_(?=[0-9])|(?<=0[xX])_(?=[0-9a-fA-F])")
_WORDS = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan"})
_QUIET = re2.Options()
_QUIET.log_errors = False


class BadPattern(ValueError):
    """It is not a regular expression of RE2's dialect; says why."""


def compile_whole(pattern: str) -> Any:
    """An expression that must match the whole text."""
    return compile_anywhere(f"^(?:{pattern})$")


def compile_anywhere(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise BadPattern(
            said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        ) from None


def extract(text: str, expression: Any, template: str) -> float | None:
    """The number that the template makes of a match; None without a match, or without a number."""
    match = expression.search(text)
    return None if match is None else parse_float(expand(template, match))


def expand(template: str, match: Any) -> str:
    """A group that is not there is empty, also the group named "1x" in `$1x`."""

    def group(reference: re.Match[str]) -> str:
        if reference[1]:
            return "$"
        return _group(match, reference[2] or reference[3])

    return _REFERENCE.sub(group, template)


def _group(match: Any, name: str) -> str:
    at = int(name) if _GROUP_NUMBER.fullmatch(name) else match.re.groupindex.get(name)
    return (match.group(at) or "") if at is not None and at <= match.re.groups else ""


def parse_float(text: str) -> float | None:
    """Go's: no blanks, underscores between digits only; beyond float64's range it is no number."""
    if text.lower() in _WORDS:
        return float(text)
    if "_" in text:
        text = _SEPARATOR.sub("", text)
    if _HEX_NUMBER.fullmatch(text):
        return _finite(text, float.fromhex)
    return _finite(text, float) if _NUMBER.fullmatch(text) else None


def _finite(text: str, read: Any) -> float | None:
    try:
        value: float = read(text)
    except OverflowError:
        return None
    return value if abs(value) != float("inf") else None
