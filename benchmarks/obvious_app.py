"""The obvious design: a Celery task per device that walks it with pysnmp and stores a row per
sample, and a RedBeat entry per device. Celery, RedBeat and pysnmp have their defaults.

The task has one engine and one event loop per process, bulk walks, no MIB look-ups and one
transaction per poll.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from functools import cache
from typing import Any

from celery import Celery
from pysnmp.hlapi.v3arch import asyncio as snmp

from benchmarks import agents, if_mib
from poller.sim import fleet

POLL = "obvious.poll"
_URL = os.environ["BENCH_REDIS_URL"]
_DATABASE = os.environ["BENCH_DATABASE"]
_PORT = int(os.environ["BENCH_SNMP_PORT"])

app = Celery("obvious", broker=_URL)
app.conf.update(task_ignore_result=True, redbeat_redis_url=_URL, timezone="UTC")

Row = tuple[str, Any]  # OID and value

SCHEMA = """
CREATE TABLE IF NOT EXISTS polls (device TEXT, started REAL, finished REAL);
CREATE TABLE IF NOT EXISTS samples (device TEXT, at REAL, metric TEXT, idx TEXT, value REAL);
CREATE INDEX IF NOT EXISTS samples_of_device ON samples (device, at);
"""


@app.task(name=POLL)
def poll(device: str) -> None:
    started = time.time()
    rows = _loop().run_until_complete(walk(device))
    samples = [
        (device, started, *if_mib.named(oid), int(value))
        for oid, value in rows
        if _is_number(value)
    ]
    database = connect()
    with database:
        database.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", samples)
        database.execute("INSERT INTO polls VALUES (?, ?, ?)", (device, started, time.time()))


async def walk(device: str) -> list[Row]:
    """Walk all variables below the module's roots."""
    target = await snmp.UdpTransportTarget.create((device, _PORT), timeout=1.5, retries=2)
    community = snmp.CommunityData(fleet.COMMUNITY)
    found: list[Row] = []
    for root in if_mib.roots():
        start = snmp.ObjectType(snmp.ObjectIdentity(root))
        how = {"lexicographicMode": False, "lookupMib": False}
        context = snmp.ContextData()
        walking = snmp.bulk_walk_cmd(
            _engine(), community, target, context, 0, agents.REPETITIONS, start, **how
        )
        async for error, status, _, varbinds in walking:
            if error or status:
                raise RuntimeError(f"{device}: {error or status}")
            found += [(str(name), value) for name, value in varbinds]
    return found


@cache
def connect() -> sqlite3.Connection:
    database = sqlite3.connect(_DATABASE, timeout=30)
    database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {SCHEMA}")
    return database


@cache
def _engine() -> Any:
    return snmp.SnmpEngine()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


def _is_number(value: Any) -> bool:
    return hasattr(value, "__int__") and not hasattr(value, "asOctets")
