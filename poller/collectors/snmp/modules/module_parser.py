"""A file to its modules and logins: both of snmp_exporter's formats, the flat one and `auths:` beside `modules:`.

Strict: what is unknown is refused, and the error says file, module, metric and field. A module is made when it is asked
for: of a file with fifty, most targets want two.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poller.collectors.snmp.metrics import regex_extracts, text_dates
from poller.collectors.snmp.modules import file_logins, module_model, yaml_text
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_model import (
    Extract,
    Filter,
    Index,
    Lookup,
    Metric,
    Module,
    WalkParams,
)
from poller.collectors.snmp.modules.typed_fields import Fields, mapping
from poller.collectors.snmp.modules.yaml_text import Node

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SUFFIX = re.compile(r"[a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SECTIONS = {"auths", "modules", "version"}
_WALKING = {
    "max_repetitions",
    "retries",
    "timeout",
    "use_unconnected_udp_socket",
    "allow_nonincreasing_oids",
}
_MODULE = {"walk", "get", "metrics", "filters", *_WALKING}
_LOGIN = {"version", "auth"}  # of a module in the flat format
_METRIC = {
    "name",
    "oid",
    "type",
    "help",
    "indexes",
    "lookups",
    "regex_extracts",
    "datetime_pattern",
    "enum_values",
    "offset",
    "scale",
    "display_hint",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file, read but not yet understood beyond the names in it."""

    source: str
    modules: Mapping[str, Node]
    logins: Mapping[str, Node]
    flat: bool

    def module(self, name: str) -> Module:
        """Raises ConfigError."""
        where = f"{self.source}: module {name}"
        if not self.flat:
            return _module(name, self.modules[name], where, _MODULE)
        version = file_logins.of_module(
            self.modules[name], where
        ).version  # a mistake there is one of the module
        module = _module(name, self.modules[name], where, _MODULE | _LOGIN)
        return dataclasses.replace(module, version=version)

    def auth(self, name: str) -> Auth:
        """Raises ConfigError, which repeats nothing of what is written there."""
        if self.flat:
            return file_logins.of_module(self.modules[name], f"{self.source}: module {name}")
        return file_logins.of_entry(self.logins[name], f"{self.source}: auth {name}")

    def auth_names(self) -> Iterator[str]:
        return iter(self.modules if self.flat else self.logins)


def read(text: str, source: str) -> File:
    """`source` names the file in errors. Raises ConfigError."""
    node = yaml_text.read(text, source)
    top = {} if node is None else mapping(node, source)
    if not _SECTIONS & set(top):
        return File(source, top, {}, flat=True)
    fields = Fields(top, source, _SECTIONS)
    modules, logins = fields.node("modules"), fields.node("auths")
    return File(
        source,
        {} if modules is None else mapping(modules, f"{source}: modules"),
        {} if logins is None else mapping(logins, f"{source}: auths"),
        flat=False,
    )


def parse(text: str, source: str) -> dict[str, Module]:
    """Every module of a file."""
    file = read(text, source)
    return {name: file.module(name) for name in file.modules}


def _module(name: str, node: Node, where: str, known: set[str]) -> Module:
    fields = Fields(node, where, known)
    metrics = [_metric(item, where) for item in fields.items("metrics")]
    filters = tuple(_filter(item, where) for item in fields.items("filters"))
    return Module(
        name,
        fields.oids("walk"),
        fields.oids("get"),
        _shared(metrics),
        filters,
        _walk_params(fields),
    )


def _walk_params(fields: Fields) -> WalkParams:
    fields.flag("use_unconnected_udp_socket")  # ours are always checked by source, see docs/snmp.md
    return WalkParams(
        max_repetitions=fields.whole("max_repetitions", 0, 2**31 - 1) or None,
        retries=fields.whole("retries", 0, 100),
        timeout_s=fields.seconds("timeout"),
        allow_nonincreasing_oids=fields.flag("allow_nonincreasing_oids"),
    )


def _shared(metrics: list[Metric]) -> tuple[Metric, ...]:
    """Equal index and lookup lists become one object, so that labels are made once per row of a table."""
    indexes: dict[str, tuple[Index, ...]] = {}
    lookups: dict[str, tuple[Lookup, ...]] = {}
    return tuple(
        dataclasses.replace(
            metric,
            indexes=indexes.setdefault(repr(metric.indexes), metric.indexes),
            lookups=lookups.setdefault(repr(metric.lookups), metric.lookups),
        )
        for metric in metrics
    )


def _metric(node: Node, where: str) -> Metric:
    name = node.get("name") if isinstance(node, dict) else None
    where = f"{where}: metric {name if isinstance(name, str) else '?'}"
    fields = Fields(node, where, _METRIC)
    return Metric(
        name=fields.name("name", _METRIC_NAME),
        oid=fields.oid("oid"),
        type=fields.text("type"),
        help=fields.text("help"),
        indexes=tuple(_index(item, where) for item in fields.items("indexes")),
        lookups=tuple(_lookup(item, where) for item in fields.items("lookups")),
        extracts=_extracts(fields),
        datetime_pattern=_pattern(fields),
        enum_values=fields.enum("enum_values"),
        display_hint=fields.text("display_hint"),
        scale=fields.number("scale"),
        offset=fields.number("offset"),
    )


def _index(node: Node, where: str) -> Index:
    fields = Fields(
        node, f"{where}: index", {"labelname", "type", "fixed_size", "implied", "enum_values"}
    )
    kind = fields.text("type")
    if kind not in module_model.INDEX_TYPES:
        hint = "use " + ", ".join(sorted(module_model.INDEX_TYPES))
        raise fields.refused("type", f'"{kind}" is not a type of index', hint)
    return Index(
        labelname=fields.name("labelname", _LABEL_NAME),
        type=kind,
        fixed_size=fields.whole("fixed_size", 0, 512) or 0,
        implied=fields.flag("implied"),
        enum_values=fields.enum("enum_values"),
    )


def _lookup(node: Node, where: str) -> Lookup:
    fields = Fields(
        node,
        f"{where}: lookup",
        {"labels", "labelname", "oid", "type", "display_hint", "enum_values"},
    )
    labelname, labels = fields.name("labelname", _LABEL_NAME), fields.texts("labels")
    if not labels:
        return Lookup(labelname)
    return Lookup(
        labelname=labelname,
        labels=labels,
        oid=fields.oid("oid"),
        type=fields.text("type"),
        display_hint=fields.text("display_hint"),
        enum_values=fields.enum("enum_values"),
    )


def _extracts(fields: Fields) -> dict[str, tuple[Extract, ...]]:
    node = fields.node("regex_extracts")
    where = f"{fields.where}: regex_extracts"
    found = {}
    for suffix, items in (mapping(node, where) if node is not None else {}).items():
        if not _SUFFIX.fullmatch(suffix):
            raise fields.refused("regex_extracts", f'"{suffix}" cannot end a metric name')
        if not isinstance(items, list | None):
            raise fields.refused(
                "regex_extracts", f"{suffix or 'the empty suffix'} must have a list"
            )
        ways = (_extract(item, f"{where}: {suffix}") for item in items or ())
        found[suffix] = tuple(way for way in ways if way is not None)
    return found


def _extract(node: Node, where: str) -> Extract | None:
    """None without an expression: snmp_exporter takes that, as long as it has no text to match with it."""
    fields = Fields(node, where, {"regex", "value"})
    if "regex" not in fields:
        return None
    return Extract(
        _expression(fields, fields.text("regex"), whole=True), fields.text("value", "$1")
    )


def _expression(fields: Fields, pattern: str, whole: bool) -> object:
    try:
        return (
            regex_extracts.compile_whole(pattern)
            if whole
            else regex_extracts.compile_anywhere(pattern)
        )
    except regex_extracts.BadPattern as error:
        key = "regex" if whole else "values"
        raise fields.refused(
            key, f'"{pattern}" is not a regular expression of RE2: {error}'
        ) from None


def _filter(node: Node, where: str) -> Filter:
    fields = Fields(node, f"{where}: filter", {"oid", "targets", "values"})
    expressions = tuple(_expression(fields, value, whole=False) for value in fields.texts("values"))
    return Filter(fields.oid("oid"), fields.oids("targets"), expressions)


def _pattern(fields: Fields) -> str:
    pattern = fields.text("datetime_pattern")
    if odd := text_dates.unknown_directive(pattern):
        raise fields.refused("datetime_pattern", f'"{odd}" stands for nothing')
    return pattern
