"""Names for the Tab key: from SQL, within 200 ms or not at all, without errors or writes.

The query runs without SQLAlchemy, whose import alone takes longer than a person waits. Nothing is
created, so pressing Tab in an empty directory leaves it empty.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

WITHIN_S = 0.2
#: Maximum number of names offered.
MAXIMUM = 200

_NAMES = "SELECT name FROM {table} WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
_TARGETS = (
    "SELECT targets.name FROM targets JOIN devices ON devices.id = targets.device_id"
    " WHERE devices.name = ? AND substr(targets.name, 1, ?) = ? ORDER BY targets.name LIMIT ?"
)
#: Metric names and label names in the YAML of an SNMP module.
_MODULE_NAMES = (re.compile(r"\bname: (\w+)"), re.compile(r"labelname: (\w+),\s+oid:"))

Connect = Callable[[], Any]


def devices(incomplete: str) -> list[str]:
    return _names_in("devices", incomplete)


def sites(incomplete: str) -> list[str]:
    return _names_in("sites", incomplete)


def credentials(incomplete: str) -> list[str]:
    return _names_in("credentials", incomplete)


def jobs(incomplete: str) -> list[str]:
    return _names_in("jobs", incomplete)


def rules(incomplete: str) -> list[str]:
    return _names_in("alert_rules", incomplete)


def severities(incomplete: str) -> list[str]:
    from poller.domain.alerts.rule import Severity

    return [severity.value for severity in Severity if severity.startswith(incomplete)]


def targets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Targets of the device that stands before the incomplete word."""
    device = ctx.params.get("device_name") or ctx.params.get("device")
    if not device:
        # After an option without its value, Typer has not sorted the words into parameters yet.
        device = next(iter(ctx.args), "")
    return _fetch(_TARGETS, (device, len(incomplete), incomplete, MAXIMUM))


def collectors(incomplete: str) -> list[str]:
    """Installed collectors, by their entry points; no collector is imported."""
    from poller import plugins

    names = {point.name for point in plugins.points("poller.collectors")[0]}
    return sorted(name for name in names if name.startswith(incomplete))


def sinks(incomplete: str) -> list[str]:
    """Sinks of the settings, and installed ones by their entry points; none is imported."""
    from poller import errors, plugins
    from poller.settings import load

    names = {point.name for point in plugins.points("poller.sinks")[0]}
    try:
        names.update(load().sink)
    except errors.ConfigError:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def states(incomplete: str) -> list[str]:
    from poller.domain.inventory.target_filter import TargetState

    return [state.value for state in TargetState if state.startswith(incomplete)]


def snmp_names(incomplete: str) -> list[str]:
    """Names of built-in SNMP modules and their metrics, by text search: YAML is too slow."""
    import poller

    folder = Path(poller.__file__).parent / "collectors" / "snmp" / "modules" / "builtin"

    names = set()
    for module in folder.glob("*.yml"):
        names.add(module.stem)
        text = module.read_text(encoding="utf-8")
        for pattern in _MODULE_NAMES:
            names.update(pattern.findall(text))

    matching = [name for name in names if name.startswith(incomplete)]
    matching.sort()
    return matching[:MAXIMUM]


def _names_in(table: str, incomplete: str) -> list[str]:
    """The names in a table that start with the incomplete word."""
    query = _NAMES.format(table=table)
    return _fetch(query, (len(incomplete), incomplete, MAXIMUM))


def _fetch(query: str, values: Sequence[object]) -> list[str]:
    """The first column of the rows that arrive in time; an empty list otherwise."""
    try:
        connect, query = _database(query)
    except Exception:  # noqa: BLE001  the door to the settings: commands report wrong ones
        return []

    names: list[str] = []

    def fetch() -> None:
        try:
            rows = connect().execute(query, values).fetchall()
        except Exception:  # noqa: BLE001  the end of a thread, behind it a driver: nothing to offer
            return
        names.extend(str(row[0]) for row in rows)

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(WITHIN_S)

    return list(names)


def _database(query: str) -> tuple[Connect, str]:
    """A function that connects, and the query in the driver's dialect."""
    from poller.settings import load

    url = load().sql_url
    if url.startswith("sqlite"):
        path = url.partition(":///")[2].partition("?")[0]
        return lambda: _sqlite(path), query

    import psycopg

    plain = "postgresql://" + url.partition("://")[2]

    def connect() -> Any:
        return psycopg.connect(plain, autocommit=True, connect_timeout=2)

    return connect, query.replace("?", "%s")


def _sqlite(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=WITHIN_S)
