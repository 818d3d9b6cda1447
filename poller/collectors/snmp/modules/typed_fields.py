"""Typed fields of a YAML mapping, parsed as snmp_exporter parses them.

Each error names the mapping and the field.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules.yaml_text import Node

_BOOLEANS = {
    **dict.fromkeys(("y", "yes", "on", "true"), True),
    **dict.fromkeys(("n", "no", "off", "false"), False),
}
_INTEGER = re.compile(r"[-+]?(0x[0-9a-fA-F]+|0b[01]+|0o?[0-7]+|[1-9][0-9]*|0)")
_BASES = {"0x": 16, "0b": 2, "0o": 8}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


class Fields:
    """The fields of one mapping, which may have `allowed` keys only; `where` names it in errors.

    `discreet`: the mapping holds secrets, so errors repeat no text of the mapping.
    """

    def __init__(
        self,
        node: Node,
        where: str,
        allowed: Collection[str],
        discreet: bool = False,
    ) -> None:
        self.where = where
        self._fields = mapping(node, where)
        for key in self._fields:
            if key not in allowed:
                name = "" if discreet else f' "{key}"'
                raise errors.ConfigError(f"{where}: unknown key{name}", hint=key_hint(key, allowed))

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def node(self, key: str) -> Node:
        """Return a field of any type."""
        return self._fields.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        value = self._fields.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refused(key, "must be a text")

        return value

    def name(self, key: str, pattern: re.Pattern[str]) -> str:
        """Return a text that matches a pattern."""
        text = self.text(key)
        if not pattern.fullmatch(text):
            raise self.refused(key, f'"{text}" is not a valid name')

        return text

    def oid(self, key: str) -> str:
        """Return a numeric OID."""
        return _oid(self._fields.get(key), f"{self.where}: {key}")

    def items(self, key: str) -> Iterator[Node]:
        """Return the items of a list, none when it is missing."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, list):
            raise self.refused(key, "must be a list")

        return iter(value or ())

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        items = tuple(self.items(key))
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) < len(items):
            raise self.refused(key, "must be a list of texts")

        return texts

    def oids(self, key: str) -> tuple[str, ...]:
        """Return a list of numeric OIDs."""
        where = f"{self.where}: {key}"
        return tuple(_oid(item, where) for item in self.items(key))

    def mapping(self, key: str) -> dict[str, Any]:
        """Return a nested mapping, empty when it is missing."""
        value = self._fields.get(key)
        if value is None:
            return {}
        return mapping(value, f"{self.where}: {key}")

    def flag(self, key: str) -> bool:
        """Return a YAML 1.1 boolean, false when it is missing."""
        text = self.text(key, "false").lower()
        if text not in _BOOLEANS:
            raise self.refused(key, f'"{text}" is neither true nor false')

        return _BOOLEANS[text]

    def whole(self, key: str, minimum: int, maximum: int) -> int | None:
        """Return a whole number; None when it is missing."""
        if key not in self:
            return None

        value = _integer(self.text(key))
        if value is None or not minimum <= value <= maximum:
            raise self.refused(key, f"must be a whole number from {minimum} to {maximum}")

        return value

    def number(self, key: str) -> float:
        """Return a finite number, 0 when it is missing."""
        text = self.text(key, "0").replace("_", "")
        if text.lower().lstrip("+-") in (".inf", ".nan"):
            raise self.refused(key, "must be finite")
        if _FLOAT.fullmatch(text):
            return float(text)

        value = _integer(text)
        if value is None:
            raise self.refused(key, f'"{text}" is not a number')

        return float(value)

    def seconds(self, key: str) -> float | None:
        """Return the seconds of a Go duration, `5s` or `1m30s`; None when it is missing.

        A number without a unit is refused: snmp_exporter takes it as nanoseconds.
        """
        if key not in self:
            return None

        text = self.text(key)
        if not re.fullmatch(rf"\+?(?:{_DURATION.pattern})+", text):
            hint = "write it with its unit, as in 5s or 500ms"
            raise self.refused(key, f'"{text}" is not a duration', hint)

        return sum(float(amount) * _UNITS_S[unit] for amount, unit in _DURATION.findall(text))

    def enum(self, key: str) -> dict[int, str]:
        """Return a mapping of numbers to names, empty when it is missing."""
        values = self._fields.get(key)
        if values is None:
            return {}
        if not isinstance(values, dict):
            raise self.refused(key, "must map numbers to names")

        names: dict[int, str] = {}
        for text, name in values.items():
            number = _integer(text)
            if number is None or isinstance(name, list | dict):
                raise self.refused(key, f'must map numbers to names, and "{text}" does not')
            names[number] = name or ""

        return names

    def refused(self, key: str, reason: str, hint: str = "") -> errors.ConfigError:
        """Return the error for a field."""
        return errors.ConfigError(f"{self.where}: {key}: {reason}", hint=hint)


def mapping(node: Node, where: str) -> dict[str, Any]:
    """Return a node that must be a mapping. Raises ConfigError."""
    if not isinstance(node, dict):
        raise errors.ConfigError(f"{where}: must be a mapping")

    return node


def key_hint(key: str, allowed: Collection[str]) -> str:
    """Return the hint for an unknown key: a similar key, else all keys."""
    near = difflib.get_close_matches(key, allowed, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return "it takes " + ", ".join(sorted(allowed))


def _oid(node: Node, where: str) -> str:
    """Return an OID without its leading dot, if it has one."""
    text = node.removeprefix(".") if isinstance(node, str) else ""
    if not oid.is_valid(text):
        written = f'"{node}"' if isinstance(node, str) else "it"
        raise errors.ConfigError(
            f"{where}: {written} is not a numeric OID", hint="write it as 1.3.6.1.2.1.1.3"
        )

    return text


def _integer(text: str) -> int | None:
    """Parse a whole number of YAML 1.1; None for another text."""
    text = text.replace("_", "")
    if not _INTEGER.fullmatch(text):
        return None

    digits = text.lstrip("+-")
    prefix = digits[:2]
    if prefix in _BASES:
        value = int(digits[2:], _BASES[prefix])
    else:
        value = int(digits, 8 if digits[0] == "0" else 10)

    return -value if text[0] == "-" else value
