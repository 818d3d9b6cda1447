"""Adaptive targets at the command line: their bounds, and the last decision."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from poller.collectors.snmp import SnmpCollector
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Decision, Policy
from poller.domain.scheduling.schedule import Schedule
from tests.integration.commands import Cli, ok


def test_a_target_becomes_adaptive_and_fixed_again(cli: Cli) -> None:
    """An adaptive target gets the settings' bounds; a fixed one has none."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", ""))
    added = ok(cli("target", "add", "sw1", "--collector", "snmp", "--policy", "adaptive"))
    assert added.out == "added target sw1/snmp: snmp every 10s (5s to 5m)\n"
    ok(cli("target", "edit", "sw1", "snmp", "--max", "1m", "--staleness", "change"))
    [found] = ok(cli("target", "list", "--json")).json["items"]
    expected = {
        "policy": "adaptive",
        "interval_ms": 10_000,
        "min_ms": 5_000,
        "max_ms": 60_000,
        "timeout_ms": 5_000,
    }
    assert expected.items() <= found.items()
    assert (found["staleness"], found["decision"]) == ("change", None)
    row = ok(cli("device", "show", "sw1")).out.splitlines()[-1].split("\t")
    assert row[2:4] == ["adaptive change", "10s (5s to 1m)"]
    ok(cli("target", "edit", "sw1", "snmp", "--policy", "fixed"))
    [found] = ok(cli("target", "list", "--json")).json["items"]
    assert (found["policy"], found["interval_ms"], found["min_ms"], found["staleness"]) == (
        "fixed",
        10_000,
        None,
        None,
    )
    assert "decision" not in found


def test_bounds_of_an_adaptive_target_come_from_its_collector_or_the_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command and a file give the same bounds; given values win, stored values stay."""
    monkeypatch.setenv("POLLER_ADAPTIVE_MAX_S", "90")
    monkeypatch.setattr(
        SnmpCollector, "schedule", Schedule(Policy.ADAPTIVE, 30_000, min_ms=20_000), raising=False
    )
    ok(cli("device", "add", "a", "192.0.2.1", "--collector", "snmp"))
    (tmp_path / "f.csv").write_text(
        "name,address,collector,interval\nb,192.0.2.2,snmp,\nc,192.0.2.3,snmp,40s\n"
    )
    ok(cli("device", "import", "f.csv"))
    ok(cli("device", "add", "d", "192.0.2.1", "--collector", "snmp", "--policy", "fixed"))
    items = ok(cli("target", "list", "--json")).json["items"]
    assert [(i["policy"], i["interval_ms"], i["min_ms"], i["max_ms"]) for i in items] == [
        ("adaptive", 30_000, 20_000, 90_000),
        ("adaptive", 30_000, 20_000, 90_000),
        ("adaptive", 40_000, 20_000, 90_000),
        ("fixed", 30_000, None, None),
    ]
    monkeypatch.delattr(SnmpCollector, "schedule")
    assert ok(cli("device", "import", "f.csv", "--update")).out.endswith("0 changed, 2 unchanged\n")
    assert ok(cli("target", "list", "--json")).json["items"] == items


def test_the_last_decision_is_shown_if_redis_is_reachable(
    cli: Cli, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People get one sentence, programs get numbers; without Redis there is a note."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "snmp", "--policy", "adaptive"))
    decision = Decision(0.983051, 2, 0, 5_000, 6_100, 6_100, "steady")
    assert "the last decisions are not shown" in ok(cli("device", "show", "sw1")).err
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    redis_client.hset(
        "poller:status", "1", Status(State.FAILING, code="timeout", decision=decision).pack()
    )
    sentence = "every 6.1 s: base 10 s, 2 errors shorten to 5 s, smoothed"
    assert ok(cli("device", "show", "sw1")).out.splitlines()[-1] == f"snmp: {sentence}"
    [found] = ok(cli("target", "list", "--json")).json["items"]
    assert found["why"] == sentence
    assert (found["decision"]["errors"], found["decision"]["chosen_ms"]) == (2, 6_100)
    [found] = ok(cli("device", "show", "sw1", "--json")).json["targets"]
    assert found["why"] == sentence
