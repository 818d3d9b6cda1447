"""The documented metrics with their labels: of docs/metrics.md, of rules, and of readings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from poller.collectors.http import http_readings
from poller.collectors.ping import collector as ping

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
_ROW = re.compile(r"^\| `([a-z]\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)
_MODULES = ROOT / "poller" / "collectors" / "snmp" / "modules" / "builtin"
#: Labels that Prometheus adds, and the labels that readings have besides those of their collector.
SCRAPED = {"job", "instance"}
OF_READINGS = {"device", "site", "target"}
_WORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless"}
_WORDS |= {"offset", "bool", "inf", "nan"}

Metrics = dict[str, set[str]]  # name -> labels


def documented() -> Metrics:
    """Metrics of the platform."""
    return _table(ROOT / "docs" / "metrics.md")


def recorded() -> Metrics:
    """Metrics that recording rules make: their labels are those of the outermost `by`."""
    rules = yaml.safe_load((PROMETHEUS / "recording.yml").read_text())
    found = {}
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        [labels, *_] = re.findall(r"by \(([^)]*)\)", rule["expr"])
        found[rule["record"]] = {label.strip() for label in labels.split(",")} - {"le"}
    return found


def readings() -> Metrics:
    """Metrics of devices, in the names of the built-in collectors."""
    found = _table(ROOT / "docs" / "reference" / "routeros-metrics.md")
    for path in _MODULES.glob("*.yml"):
        for module in yaml.safe_load(path.read_text())["modules"].values():
            for metric in module.get("metrics", ()):
                found.setdefault(metric["name"], set()).update(_snmp_labels(metric))
    for name in (*ping.HELP, *http_readings.HELP):
        found[name] = {"phase"} if name == "http_phase_seconds" else set()
    return {name: labels | OF_READINGS for name, labels in found.items()}


def _table(page: Path) -> Metrics:
    rows = _ROW.findall(page.read_text())
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels in rows}


def _snmp_labels(metric: dict[str, Any]) -> set[str]:
    parts = (*metric.get("indexes", ()), *metric.get("lookups", ()))
    return {part["labelname"] for part in parts}


def names_in(expression: str) -> set[str]:
    """The metrics of an expression: names that are no function, keyword, label or text."""
    plain = re.sub(r'"[^"]*"', "", expression)
    plain = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", "", plain)
    plain = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\w+", "", plain)
    words = re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*(?!\w*\s*\()", plain)
    functions = set(re.findall(r"([a-zA-Z_]\w*)\s*\(", plain))
    return {word for word in words if word not in functions | _WORDS and not word[0].isdigit()}


def labels_in(expression: str) -> set[str]:
    """The labels of an expression: of its matchers and its groupings."""
    matched = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression)
    grouped = re.findall(r"\b(?:by|without|on)\s*\(([^)]*)\)", expression)
    return {*matched, *(name.strip() for group in grouped for name in group.split(",") if name)}
