"""Typed fields out of a document, read as snmp_exporter reads them; each complaint says which thing and which field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules.yaml_text import Node

_TRUTHS = {
    **dict.fromkeys(("y", "yes", "on", "true"), True),
    **dict.fromkeys(("n", "no", "off", "false"), False),
}
_INTEGER = re.compile(r"[-+]?(0x[0-9a-fA-F]+|0b[01]+|0o?[0-7]+|[1-9][0-9]*|0)")
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
    """The fields of one thing. `where` names it in complaints; what is not `known` is refused."""

    def __init__(
        self, node: Node, where: str, known: Collection[str], discreet: bool = False
    ) -> None:
        self.where = where
        self._fields = mapping(node, where)
        self._discreet = discreet  # secrets are near: repeat nothing of what was written
        for key in self._fields:
            if key not in known:
                raise self._unknown(key, known)

    def _unknown(self, key: str, known: Collection[str]) -> errors.ConfigError:
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "it takes " + ", ".join(sorted(known))
        return errors.ConfigError(
            f"{self.where}: unknown key" + ("" if self._discreet else f' "{key}"'), hint=hint
        )

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def node(self, key: str) -> Node:
        return self._fields.get(key)

    def text(self, key: str, default: str = "") -> str:
        value = self._fields.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refused(key, "must be a text")
        return value

    def name(self, key: str, pattern: re.Pattern[str]) -> str:
        text = self.text(key)
        if not pattern.fullmatch(text):
            raise self.refused(key, f'"{text}" is not a valid name')
        return text

    def oid(self, key: str) -> str:
        return oid_of(self._fields.get(key), f"{self.where}: {key}")

    def items(self, key: str) -> Iterator[Node]:
        value = self._fields.get(key)
        if value is not None and not isinstance(value, list):
            raise self.refused(key, "must be a list")
        return iter(value or ())

    def texts(self, key: str) -> tuple[str, ...]:
        items = tuple(self.items(key))
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) < len(items):
            raise self.refused(key, "must be a list of texts")
        return texts

    def oids(self, key: str) -> tuple[str, ...]:
        return tuple(oid_of(item, f"{self.where}: {key}") for item in self.items(key))

    def flag(self, key: str) -> bool:
        text = self.text(key, "false").lower()
        if text not in _TRUTHS:
            raise self.refused(key, f'"{text}" is neither true nor false')
        return _TRUTHS[text]

    def whole(self, key: str, least: int, most: int) -> int | None:
        """None when it is not given."""
        if key not in self:
            return None
        value = integer(self.text(key))
        if value is None or not least <= value <= most:
            raise self.refused(key, f"must be a whole number from {least} to {most}")
        return value

    def number(self, key: str) -> float:
        text = self.text(key, "0").replace("_", "")
        if text.lower().lstrip("+-") in (".inf", ".nan"):
            raise self.refused(key, "must be finite")
        if _FLOAT.fullmatch(text):
            return float(text)
        value = integer(text)
        if value is None:
            raise self.refused(key, f'"{text}" is not a number')
        return float(value)

    def seconds(self, key: str) -> float | None:
        """Go's durations, `5s` or `1m30s`; a bare number is nanoseconds to snmp_exporter, which nobody means."""
        if key not in self:
            return None
        text = self.text(key)
        if not re.fullmatch(rf"\+?(?:{_DURATION.pattern})+", text):
            raise self.refused(
                key, f'"{text}" is not a duration', "write it with its unit, as in 5s or 500ms"
            )
        return sum(float(amount) * _UNITS_S[unit] for amount, unit in _DURATION.findall(text))

    def enum(self, key: str) -> dict[int, str]:
        """Numbers to names."""
        value = self._fields.get(key)
        values = {} if value is None else value
        if not isinstance(values, dict):
            raise self.refused(key, "must map numbers to names")
        named: dict[int, str] = {}
        for number, text in values.items():
            at = integer(number)
            if at is None or isinstance(text, list | dict):
                raise self.refused(key, f'must map numbers to names, and "{number}" does not')
            named[at] = text or ""
        return named

    def refused(self, key: str, what: str, hint: str = "") -> errors.ConfigError:
        return errors.ConfigError(f"{self.where}: {key}: {what}", hint=hint)


def mapping(node: Node, where: str) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise errors.ConfigError(f"{where}: must be a mapping")
    return node


def oid_of(node: Node, where: str) -> str:
    """Without the leading dot some write."""
    text = node.removeprefix(".") if isinstance(node, str) else ""
    if not oid.is_valid(text):
        written = f'"{node}"' if isinstance(node, str) else "it"
        raise errors.ConfigError(
            f"{where}: {written} is not a numeric OID", hint="write it as 1.3.6.1.2.1.1.3"
        )
    return text


def integer(text: str) -> int | None:
    """YAML 1.1's whole numbers; None when it is none."""
    text = text.replace("_", "")
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-")
    base = {"0x": 16, "0b": 2, "0o": 8}.get(digits[:2], 8 if digits[0] == "0" else 10)
    value = int(digits[2:] if digits[:2] in ("0x", "0b", "0o") else digits, base)
    return -value if text[0] == "-" else value
