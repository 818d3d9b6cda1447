"""YAML to plain texts, lists and mappings, whatever the file holds: no bomb, no endless depth, no key given twice.

Scalars stay as they are written (a null is None): `1.10` is an OID and `on` a name here, never a number or a truth.
"""

from __future__ import annotations

from typing import Any

import yaml

from poller import errors

Node = None | str | list["Node"] | dict[str, "Node"]

#: Ten times the largest file snmp_exporter ships.
MOST_BYTES = 20_000_000
#: Values in a file, counting what aliases stand for. The largest known file has 160,000.
MOST_VALUES = 1_000_000
#: Modules, metrics, lookups, enums: eight levels are enough for the language.
DEEPEST = 32

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_CORE_TAGS = ("str", "int", "float", "bool", "null", "map", "seq")
_TAGS = frozenset({None, "!", *(f"tag:yaml.org,2002:{name}" for name in _CORE_TAGS)})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str, source: str) -> Node:
    """The first document of a text; None when it is empty. Raises ConfigError, which never repeats a value."""
    try:
        loader = _LOADER(text)
        try:
            return _Reader(loader, source).document()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise errors.ConfigError(f"{source} is not valid YAML", cause=_complaint(error)) from None


def _complaint(error: yaml.YAMLError) -> str:
    """Where and what, without the text around it: that may be a password."""
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{getattr(error, 'problem', None) or 'a character YAML does not allow'}{where}"


class _Reader:
    """Builds nodes from the parser's events; counts what it builds."""

    def __init__(self, loader: Any, source: str) -> None:
        self._loader = loader
        self._source = source
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._values = 0

    def document(self) -> Node:
        while not isinstance(self._loader.peek_event(), yaml.DocumentStartEvent):
            if isinstance(self._loader.get_event(), yaml.StreamEndEvent):
                return None
        self._loader.get_event()
        return self._node(self._loader.get_event(), 0)

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.tag not in _TAGS:
            raise self._refused(event, "a tag that has no meaning here")
        before = self._values
        self._count(event, 1)
        if isinstance(event, yaml.ScalarEvent):
            node: Node = None if event.implicit[0] and event.value in _NULLS else event.value
        elif depth == DEEPEST:
            raise self._refused(event, f"more than {DEEPEST} levels")
        else:
            node = (
                self._list(depth)
                if isinstance(event, yaml.SequenceStartEvent)
                else self._mapping(depth)
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._values - before
        return node

    def _list(self, depth: int) -> list[Node]:
        items = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Node]:
        found: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            key = self._key(event)
            value = self._node(self._loader.get_event(), depth + 1)
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged = {**self._merged(event, value), **merged}
            elif key in found:
                raise self._refused(event, "the same key twice")
            else:
                found[key] = value
        return {**merged, **found}

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.AliasEvent):
            key = self._alias(event)
        else:
            key = event.value if isinstance(event, yaml.ScalarEvent) else None
        if not isinstance(key, str):
            raise self._refused(event, "a key that is no plain text")
        return key

    def _merged(self, event: Any, value: Node) -> dict[str, Node]:
        """YAML's `<<`: the fields of one mapping, or of several, the first of which count."""
        fields: dict[str, Node] = {}
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                raise self._refused(event, "<< takes a mapping, or a list of them")
            fields = {**one, **fields}
        return fields

    def _alias(self, event: Any) -> Node:
        if event.anchor not in self._anchors:
            raise self._refused(event, "an alias (*) that stands for nothing before it")
        node, values = self._anchors[event.anchor]
        self._count(event, values)
        return node

    def _count(self, event: Any, values: int) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            raise self._refused(
                event, f"more than {MOST_VALUES:,} values, with what its aliases stand for"
            )

    def _refused(self, event: Any, what: str) -> errors.ConfigError:
        return errors.ConfigError(f"{self._source}, line {event.start_mark.line + 1}: {what}")
