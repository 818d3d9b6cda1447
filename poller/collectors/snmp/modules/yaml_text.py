"""YAML to plain texts, lists and mappings, safe for any file: no alias bomb, no endless depth.

Scalars stay as they are written (a null is None): `1.10` is an OID and `on` is a name, never a
number or a boolean. A key may be given once only.
"""

from __future__ import annotations

from typing import Any

import yaml

from poller import errors

Node = None | str | list["Node"] | dict[str, "Node"]

#: Ten times the largest file snmp_exporter ships.
MAX_BYTES = 20_000_000
#: Values in a file, with aliases expanded. The largest known file has 160,000.
MAX_VALUES = 1_000_000
#: Levels of nesting. The module language needs eight.
MAX_DEPTH = 32

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_CORE_TAGS = ("str", "int", "float", "bool", "null", "map", "seq")
_TAGS = frozenset({None, "!", *(f"tag:yaml.org,2002:{name}" for name in _CORE_TAGS)})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadYaml(errors.ConfigError):
    """Raised for a text that is refused; `line` and `reason` are for reports of another form."""

    line = 1
    reason = ""

    def at(self, line: int, reason: str) -> BadYaml:
        self.line = line
        self.reason = reason
        return self


def read(text: str, source: str, max_values: int = MAX_VALUES) -> Node:
    """Return the first document of a text; None when it is empty.

    `source` names the text in errors. Raises BadYaml, which never repeats a value.
    """
    try:
        loader = _LOADER(text)
        try:
            return _Reader(loader, source, max_values).document()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _invalid(error, source) from None


def _invalid(error: yaml.YAMLError, source: str) -> BadYaml:
    """Return the place and the reason, without the text around it, which may be a password."""
    reason = str(getattr(error, "problem", None) or "a character YAML does not allow")
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    invalid = BadYaml(f"{source} is not valid YAML", reason + where)
    return invalid.at(mark.line + 1 if mark else 1, reason)


class _Reader:
    """Builds nodes from the parser's events, and counts them."""

    def __init__(self, loader: Any, source: str, max_values: int) -> None:
        self._loader = loader
        self._source = source
        self._max_values = max_values
        #: By anchor: the node, and how many values it holds.
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._values = 0

    def document(self) -> Node:
        """Return the first document; None when there is none."""
        while not isinstance(self._loader.peek_event(), yaml.DocumentStartEvent):
            if isinstance(self._loader.get_event(), yaml.StreamEndEvent):
                return None

        self._loader.get_event()
        return self._node(self._loader.get_event(), 0)

    def _node(self, event: Any, depth: int) -> Node:
        """Build the node that begins with this event, or that an alias names."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.tag not in _TAGS:
            raise self._refused(event, "a tag that has no meaning here")

        before = self._values
        self._count(event, 1)
        node = self._content(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, self._values - before)

        return node

    def _content(self, event: Any, depth: int) -> Node:
        """Build a scalar, a list or a mapping."""
        if isinstance(event, yaml.ScalarEvent):
            is_null = event.implicit[0] and event.value in _NULLS
            return None if is_null else event.value

        if depth == MAX_DEPTH:
            raise self._refused(event, f"more than {MAX_DEPTH} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(depth)
        return self._mapping(depth)

    def _list(self, depth: int) -> list[Node]:
        """Build the items up to the end of a list."""
        items = []
        event = self._loader.get_event()
        while not isinstance(event, yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
            event = self._loader.get_event()

        return items

    def _mapping(self, depth: int) -> dict[str, Node]:
        """Build the fields up to the end of a mapping; merged fields lose against own ones."""
        fields: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        event = self._loader.get_event()
        while not isinstance(event, yaml.MappingEndEvent):
            key = self._key(event)
            value = self._node(self._loader.get_event(), depth + 1)
            if _is_merge(key, event):
                merged = {**self._merged(event, value), **merged}
            elif key in fields:
                raise self._refused(event, "the same key twice")
            else:
                fields[key] = value
            event = self._loader.get_event()

        return {**merged, **fields}

    def _key(self, event: Any) -> str:
        """Return the key of a field, which must be a text."""
        key: Node = None
        if isinstance(event, yaml.AliasEvent):
            key = self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            key = event.value

        if not isinstance(key, str):
            raise self._refused(event, "a key that is no plain text")

        return key

    def _merged(self, event: Any, value: Node) -> dict[str, Node]:
        """Return the fields of YAML's `<<`: of one mapping, or of a list where the first wins."""
        mappings = value if isinstance(value, list) else [value]
        fields: dict[str, Node] = {}

        for mapping in mappings:
            if not isinstance(mapping, dict):
                raise self._refused(event, "<< takes a mapping, or a list of them")
            fields = {**mapping, **fields}

        return fields

    def _alias(self, event: Any) -> Node:
        """Return the node of an anchor."""
        if event.anchor not in self._anchors:
            raise self._refused(event, "an alias (*) that stands for nothing before it")

        node, values = self._anchors[event.anchor]
        self._count(event, values)
        return node

    def _count(self, event: Any, values: int) -> None:
        """Count values. Raises BadYaml when there are too many."""
        self._values += values
        most = self._max_values
        if self._values > most:
            raise self._refused(event, f"more than {most:,} values, with aliases expanded")

    def _refused(self, event: Any, reason: str) -> BadYaml:
        """Return the error for a line."""
        line = event.start_mark.line + 1
        return BadYaml(f"{self._source}, line {line}: {reason}").at(line, reason)


def _is_merge(key: str, event: Any) -> bool:
    """Return whether a key is an unquoted `<<`."""
    return key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]
