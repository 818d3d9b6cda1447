"""Parses a module file: modules and logins in both formats of snmp_exporter.

The flat format has modules at the top level; the other has sections `auths` and `modules`.
Unknown keys are refused, and an error names file, module, metric and field. A module is parsed
when it is first used: of a file with fifty modules most targets use two.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
_MODULE_FIELDS = {
    "walk",
    "get",
    "metrics",
    "filters",
    "max_repetitions",
    "retries",
    "timeout",
    "use_unconnected_udp_socket",
    "allow_nonincreasing_oids",
}
_FLAT_MODULE_FIELDS = _MODULE_FIELDS | {"version", "auth"}
_METRIC_FIELDS = {
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
_INDEX_FIELDS = {"labelname", "type", "fixed_size", "implied", "enum_values"}
_LOOKUP_FIELDS = {"labels", "labelname", "oid", "type", "display_hint", "enum_values"}


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """One file, read as far as its names; modules and logins are parsed on request."""

    source: str
    modules: Mapping[str, Node]
    logins: Mapping[str, Node]
    flat: bool

    def module(self, name: str) -> Module:
        """Parse a module.

        Raises ConfigError.
        """
        where = f"{self.source}: module {name}"
        node = self.modules[name]
        if not self.flat:
            return _module(name, node, where, _MODULE_FIELDS)

        version = file_logins.from_module(node, where).version
        module = _module(name, node, where, _FLAT_MODULE_FIELDS)
        return dataclasses.replace(module, version=version)

    def auth(self, name: str) -> Auth:
        """Parse a login. Raises ConfigError, which repeats no text of the login."""
        if self.flat:
            return file_logins.from_module(self.modules[name], f"{self.source}: module {name}")
        return file_logins.from_entry(self.logins[name], f"{self.source}: auth {name}")

    def auth_names(self) -> Iterator[str]:
        """Return the names of all logins; in the flat format each module is one."""
        return iter(self.modules if self.flat else self.logins)


def read(text: str, source: str) -> ModuleFile:
    """Read a file as far as the names in it; `source` names it in errors.

    Raises ConfigError.
    """
    node = yaml_text.read(text, source)
    top = {} if node is None else mapping(node, source)
    if not _SECTIONS & set(top):
        return ModuleFile(source, top, {}, flat=True)

    sections = Fields(top, source, _SECTIONS)
    modules = sections.mapping("modules")
    logins = sections.mapping("auths")
    return ModuleFile(source, modules, logins, flat=False)


def parse(text: str, source: str) -> dict[str, Module]:
    """Parse every module of a file. Raises ConfigError."""
    file = read(text, source)
    return {name: file.module(name) for name in file.modules}


def _module(
    name: str,
    node: Node,
    where: str,
    allowed: set[str],
) -> Module:
    """Parse a module with these allowed fields.

    Raises ConfigError.
    """
    fields = Fields(node, where, allowed)
    metrics = [_metric(item, where) for item in fields.items("metrics")]
    filters = [_filter(item, where) for item in fields.items("filters")]
    return Module(
        name=name,
        walk=fields.oids("walk"),
        get=fields.oids("get"),
        metrics=_with_shared_labels(metrics),
        filters=tuple(filters),
        walk_params=_walk_params(fields),
    )


def _walk_params(fields: Fields) -> WalkParams:
    """Parse how a module asks to be read."""
    # Checked, but without effect: every answer is checked by its source, see docs/snmp.md.
    fields.flag("use_unconnected_udp_socket")
    return WalkParams(
        max_repetitions=fields.whole("max_repetitions", 0, 2**31 - 1) or None,
        retries=fields.whole("retries", 0, 100),
        timeout_s=fields.seconds("timeout"),
        allow_nonincreasing_oids=fields.flag("allow_nonincreasing_oids"),
    )


def _with_shared_labels(metrics: list[Metric]) -> tuple[Metric, ...]:
    """Make equal index and lookup lists one object, so that a row's labels are made once."""
    indexes: dict[str, tuple[Index, ...]] = {}
    lookups: dict[str, tuple[Lookup, ...]] = {}
    shared = []
    for metric in metrics:
        same_indexes = indexes.setdefault(repr(metric.indexes), metric.indexes)
        same_lookups = lookups.setdefault(repr(metric.lookups), metric.lookups)
        shared.append(dataclasses.replace(metric, indexes=same_indexes, lookups=same_lookups))

    return tuple(shared)


def _metric(node: Node, where: str) -> Metric:
    """Parse a metric.

    Raises ConfigError.
    """
    name = node.get("name") if isinstance(node, dict) else None
    shown_name = name if isinstance(name, str) else "?"
    where = f"{where}: metric {shown_name}"
    fields = Fields(node, where, _METRIC_FIELDS)
    return Metric(
        name=fields.name("name", _METRIC_NAME),
        oid=fields.oid("oid"),
        type=fields.text("type"),
        help=fields.text("help"),
        indexes=tuple(_index(item, where) for item in fields.items("indexes")),
        lookups=tuple(_lookup(item, where) for item in fields.items("lookups")),
        extracts=_extracts(fields),
        datetime_pattern=_datetime_pattern(fields),
        enum_values=fields.enum("enum_values"),
        display_hint=fields.text("display_hint"),
        scale=fields.number("scale"),
        offset=fields.number("offset"),
    )


def _index(node: Node, where: str) -> Index:
    """Parse an index of a metric.

    Raises ConfigError.
    """
    fields = Fields(node, f"{where}: index", _INDEX_FIELDS)
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
    """Parse a lookup of a metric.

    Raises ConfigError.
    """
    fields = Fields(node, f"{where}: lookup", _LOOKUP_FIELDS)
    labelname = fields.name("labelname", _LABEL_NAME)
    labels = fields.texts("labels")
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
    """Parse the extracts of a metric, by suffix.

    Raises ConfigError.
    """
    by_suffix = {}
    for suffix, items in fields.mapping("regex_extracts").items():
        if not _SUFFIX.fullmatch(suffix):
            raise fields.refused("regex_extracts", f'"{suffix}" cannot end a metric name')
        if not isinstance(items, list | None):
            shown_suffix = suffix or "the empty suffix"
            raise fields.refused("regex_extracts", f"{shown_suffix} must have a list")

        where = f"{fields.where}: regex_extracts: {suffix}"
        extracts = [_extract(item, where) for item in items or ()]
        by_suffix[suffix] = tuple(extract for extract in extracts if extract is not None)

    return by_suffix


def _extract(node: Node, where: str) -> Extract | None:
    """Parse one extract; None without an expression, which snmp_exporter accepts, too."""
    fields = Fields(node, where, {"regex", "value"})
    if "regex" not in fields:
        return None

    pattern = fields.text("regex")
    try:
        expression = regex_extracts.compile_whole(pattern)
    except regex_extracts.BadPattern as error:
        raise fields.refused("regex", _not_re2(pattern, error)) from None

    return Extract(expression, fields.text("value", "$1"))


def _filter(node: Node, where: str) -> Filter:
    """Parse a row filter of a module.

    Raises ConfigError.
    """
    fields = Fields(node, f"{where}: filter", {"oid", "targets", "values"})
    expressions: list[Any] = []
    for pattern in fields.texts("values"):
        try:
            expressions.append(regex_extracts.compile_anywhere(pattern))
        except regex_extracts.BadPattern as error:
            raise fields.refused("values", _not_re2(pattern, error)) from None

    return Filter(fields.oid("oid"), fields.oids("targets"), tuple(expressions))


def _not_re2(pattern: str, error: regex_extracts.BadPattern) -> str:
    """Return the reason for refusing an expression."""
    return f'"{pattern}" is not a regular expression of RE2: {error}'


def _datetime_pattern(fields: Fields) -> str:
    """Parse the pattern of a date.

    Raises ConfigError.
    """
    pattern = fields.text("datetime_pattern")
    directive = text_dates.unknown_directive(pattern)
    if directive:
        raise fields.refused("datetime_pattern", f'"{directive}" stands for nothing')

    return pattern
