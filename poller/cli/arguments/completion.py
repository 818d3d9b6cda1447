"""Names for the Tab key: from SQL, within 200 ms or not at all, and never an error or a trace of itself.

Asked without SQLAlchemy, whose import alone takes longer than a person waits; nothing is created and nothing
written, so pressing Tab in an empty directory leaves it empty.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any

import typer

WITHIN_S = 0.2
MOST = 200

_NAMED = "SELECT name FROM {table} WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
_TARGETS = (
    "SELECT targets.name FROM targets JOIN devices ON devices.id = targets.device_id"
    " WHERE devices.name = ? AND substr(targets.name, 1, ?) = ? ORDER BY targets.name LIMIT ?"
)


def devices(incomplete: str) -> list[str]:
    return _named("devices", incomplete)


def sites(incomplete: str) -> list[str]:
    return _named("sites", incomplete)


def credentials(incomplete: str) -> list[str]:
    return _named("credentials", incomplete)


def targets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the device that stands before it on the line."""
    # Behind an option that still lacks its value, words are not sorted into parameters yet.
    device = ctx.params.get("device_name") or ctx.params.get("device") or next(iter(ctx.args), "")
    return _ask(_TARGETS, (device, len(incomplete), incomplete, MOST))


def collectors(incomplete: str) -> list[str]:
    """Installed ones, by their entry points; none is imported."""
    from poller import plugins

    names = {point.name for point in plugins.points("poller.collectors")[0]}
    return sorted(name for name in names if name.startswith(incomplete))


def snmp_names(incomplete: str) -> list[str]:
    """Of the built-in modules, without their YAML being understood: that would take longer than a person waits."""
    import re
    from pathlib import Path

    import poller

    modules = sorted(
        (Path(poller.__file__).parent / "collectors" / "snmp" / "modules" / "builtin").glob("*.yml")
    )
    texts = [module.read_text(encoding="utf-8") for module in modules]
    names = {name for text in texts for name in re.findall(r"\bname: (\w+)", text)}
    names |= {name for text in texts for name in re.findall(r"labelname: (\w+),\s+oid:", text)}
    return sorted(n for n in {*names, *(m.stem for m in modules)} if n.startswith(incomplete))[
        :MOST
    ]


def _named(table: str, incomplete: str) -> list[str]:
    return _ask(_NAMED.format(table=table), (len(incomplete), incomplete, MOST))


def _ask(query: str, values: Sequence[object]) -> list[str]:
    """The first column of an answer that came in time, else nothing."""
    answer: list[str] = []
    try:
        connect, query = _database(query)
    except Exception:  # noqa: BLE001  wrong settings are told by commands, not by the Tab key
        return []

    def ask() -> None:
        try:
            connection = connect()
            answer.extend(str(row[0]) for row in connection.execute(query, values).fetchall())
        except Exception:  # noqa: BLE001  no database, no tables, no permission: nothing to offer
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    return list(answer)


def _database(query: str) -> tuple[Callable[[], Any], str]:
    """How to connect, and the query in the driver's dialect."""
    from poller.settings import load

    url = load().sql_url
    if url.startswith("sqlite"):
        path = url.partition(":///")[2].partition("?")[0]
        return lambda: _sqlite(path), query
    import psycopg

    plain = "postgresql://" + url.partition("://")[2]
    return lambda: psycopg.connect(plain, autocommit=True, connect_timeout=2), query.replace(
        "?", "%s"
    )


def _sqlite(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=WITHIN_S)
