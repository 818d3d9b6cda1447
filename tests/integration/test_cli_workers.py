"""`poller workers`: the workers, their tags and load, and lost ones; from a real Valkey."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from poller.cli import main
from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry
from poller.state.keys import Keys
from tests.integration.commands import Result

KEYS = Keys()
Run = Callable[..., Result]


@pytest.fixture
def listed(
    home: Path, valkey_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)

    def run(*arguments: str) -> Result:
        code = main.run(["workers", *arguments])
        return Result(code, *capsys.readouterr())

    return run


def now_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def test_each_worker_has_one_row(listed: Run, redis_client: redis.Redis) -> None:
    """A row has tags, collectors (plugins with their package), load and last poll."""
    busy = Worker(
        name="ams-1",
        seen_ms=0,
        started_ms=1,
        polls=1234,
        in_flight=3,
        rss_bytes=2**27,
        tags={"zone": "dmz", "site": "ams"},
        collectors={"snmp": "poller 0.1.0", "olt": "acme 2.0"},
        queues=["poll.snmp"],
        slots=16,
        polled_ms=now_ms(redis_client),
        pid=4711,
    )
    worker_registry.announce(redis_client, KEYS, busy)
    worker_registry.announce(redis_client, KEYS, Worker("new", 0, 1, 0, 0, 2**20))
    head, *rows = listed().out.splitlines()
    titles = head.split("\t")
    found = {row.split("\t")[0]: dict(zip(titles, row.split("\t"), strict=True)) for row in rows}
    ams = found["ams-1"]
    assert ams["tags"] == "site=ams zone=dmz"
    assert (ams["pid"], found["new"]["pid"]) == ("4711", "")
    assert ams["collectors"] == "olt (acme 2.0), snmp"
    assert (ams["batches"], ams["polls"], ams["last"]) == ("3 of 16", "1,234", "0 s ago")
    assert (found["new"]["state"], found["new"]["last"], found["new"]["tags"]) == (
        "running",
        "none yet",
        "none",
    )


def test_a_lost_worker_comes_last_and_says_since_when(
    listed: Run, redis_client: redis.Redis
) -> None:
    """A worker without a heartbeat for a minute is lost, whatever its name."""
    worker_registry.announce(redis_client, KEYS, Worker("a", 0, 1, 0, 0, 2**20))
    entry = json.loads(redis_client.hget(KEYS.workers, "a") or "")
    redis_client.hset(
        KEYS.workers, "a", json.dumps({**entry, "seen_ms": entry["seen_ms"] - 60_000})
    )
    worker_registry.announce(redis_client, KEYS, Worker("b", 0, 1, 0, 0, 2**20))
    first, last = listed("--json").json["items"]
    assert (first["name"], first["state"], last["name"], last["state"]) == (
        "b",
        "running",
        "a",
        "lost",
    )
    assert 60 <= last["seen_seconds"] < 70
    assert "lost 1 m 0 s ago" in listed().out


def test_without_workers_it_says_how_to_start_one(listed: Run) -> None:
    """A note with a command replaces the empty table."""
    result = listed()
    assert result.code == 0
    assert "celery -A poller worker" in result.err
