"""YAML to modules. Strict: what is unknown is refused, and the error says file, module, metric and field."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import yaml

from poller import errors
from poller.collectors.snmp import language, oid
from poller.collectors.snmp.language import Index, Lookup, Metric, Module

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def parse(text: str, source: str) -> dict[str, Module]:
    """Every module of a file; `source` names it in errors. Raises ConfigError."""
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  both are safe
    except yaml.YAMLError as error:
        raise errors.ConfigError(f"{source} is not valid YAML", cause=str(error)) from None
    top = _mapping(document, source, {"modules"})
    modules = _plain_mapping(top.get("modules") or {}, f"{source}: modules")
    return {name: _module(name, body, f"{source}: module {name}") for name, body in modules.items()}


def _module(name: str, body: Any, where: str) -> Module:
    fields = _mapping(body, where, {"walk", "get", "metrics"})
    metrics = [_metric(item, where) for item in _list(fields.get("metrics"), f"{where}: metrics")]
    return Module(name, _oids(fields, "walk", where), _oids(fields, "get", where), _shared(metrics))


def _shared(metrics: list[Metric]) -> tuple[Metric, ...]:
    """Equal index and lookup lists become one object, so that labels are made once per row of a table."""
    shapes: list[tuple[tuple[Index, ...], tuple[Lookup, ...]]] = []
    shared = []
    for metric in metrics:
        shape = (metric.indexes, metric.lookups)
        if shape not in shapes:
            shapes.append(shape)
        indexes, lookups = shapes[shapes.index(shape)]
        shared.append(dataclasses.replace(metric, indexes=indexes, lookups=lookups))
    return tuple(shared)


def _metric(body: Any, where: str) -> Metric:
    name = body.get("name", "?") if isinstance(body, dict) else "?"
    where = f"{where}: metric {name}"
    known = {"name", "oid", "type", "help", "indexes", "lookups", "enum_values", "scale", "offset"}
    fields = _mapping(body, where, known)
    return Metric(
        name=_name(fields, "name", where, _METRIC_NAME),
        oid=_oid(fields.get("oid"), f"{where}: oid"),
        type=_choice(fields, "type", where, language.METRIC_TYPES),
        help=str(fields.get("help", "")),
        indexes=tuple(_index(item, where) for item in _list(fields.get("indexes"), f"{where}: indexes")),
        lookups=tuple(_lookup(item, where) for item in _list(fields.get("lookups"), f"{where}: lookups")),
        enum_values=_enum(fields, where),
        scale=_number(fields, "scale", where),
        offset=_number(fields, "offset", where),
    )


def _index(body: Any, where: str) -> Index:
    where = f"{where}: index"
    fields = _mapping(body, where, {"labelname", "type", "fixed_size", "implied", "enum_values"})
    return Index(
        labelname=_name(fields, "labelname", where, _LABEL_NAME),
        type=_choice(fields, "type", where, language.INDEX_TYPES),
        fixed_size=int(_number(fields, "fixed_size", where)),
        implied=fields.get("implied", False) is True,
        enum_values=_enum(fields, where),
    )


def _lookup(body: Any, where: str) -> Lookup:
    where = f"{where}: lookup"
    fields = _mapping(body, where, {"labels", "labelname", "oid", "type", "enum_values"})
    labels = tuple(str(label) for label in _list(fields.get("labels"), f"{where}: labels"))
    labelname = _name(fields, "labelname", where, _LABEL_NAME)
    if not labels:  # it only removes a label
        return Lookup(labelname)
    return Lookup(
        labelname=labelname,
        labels=labels,
        oid=_oid(fields.get("oid"), f"{where}: oid"),
        type=_choice(fields, "type", where, language.LOOKUP_TYPES),
        enum_values=_enum(fields, where),
    )


def _mapping(body: Any, where: str, known: Collection[str]) -> Mapping[str, Any]:
    fields = _plain_mapping(body, where)
    for key in fields:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "it takes " + ", ".join(sorted(known))
            raise errors.ConfigError(f'{where}: unknown key "{key}"', hint=hint)
    return fields


def _plain_mapping(body: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise errors.ConfigError(f"{where}: must be a mapping")
    return {str(key): value for key, value in body.items()}


def _list(body: Any, where: str) -> Iterable[Any]:
    if body is None:
        return ()
    if not isinstance(body, list):
        raise errors.ConfigError(f"{where}: must be a list")
    return body


def _oids(fields: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    return tuple(_oid(item, f"{where}: {key}") for item in _list(fields.get(key), f"{where}: {key}"))


def _oid(value: Any, where: str) -> str:
    text = str(value).removeprefix(".")
    if not oid.is_valid(text):
        raise errors.ConfigError(f'{where}: "{value}" is not a numeric OID', hint="write it as 1.3.6.1.2.1.1.3")
    return text


def _name(fields: Mapping[str, Any], key: str, where: str, pattern: re.Pattern[str]) -> str:
    text = str(fields.get(key, ""))
    if not pattern.fullmatch(text):
        raise errors.ConfigError(f'{where}: {key}: "{text}" is not a valid name')
    return text


def _choice(fields: Mapping[str, Any], key: str, where: str, known: Collection[str]) -> str:
    text = str(fields.get(key, ""))
    if text not in known:
        raise errors.ConfigError(f'{where}: {key}: unknown type "{text}"', hint="use " + ", ".join(sorted(known)))
    return text


def _number(fields: Mapping[str, Any], key: str, where: str) -> float:
    value = fields.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise errors.ConfigError(f'{where}: {key}: "{value}" is not a number')
    return float(value)


def _enum(fields: Mapping[str, Any], where: str) -> dict[int, str]:
    values = fields.get("enum_values") or {}
    if not isinstance(values, dict) or not all(type(number) is int for number in values):
        raise errors.ConfigError(f"{where}: enum_values: must map numbers to names")
    return {number: str(text) for number, text in values.items()}
