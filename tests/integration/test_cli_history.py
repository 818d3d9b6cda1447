"""`poller history size`: what history takes, from what the fleet writes."""

from __future__ import annotations

import json
import time

import pytest

from poller import bootstrap
from poller.db.history import compaction, rollup_pass
from poller.db.history.rollups import Kept
from poller.db.inventory import targets
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.access.scopes import Scope
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from tests.integration import api_clients
from tests.integration.commands import Cli

MINUTE = 60_000
DAY = 1440 * MINUTE
TODAY = time.time_ns() // 1_000_000 // DAY * DAY


@pytest.fixture
def history(cli: Cli) -> None:
    """Two days of a poll a minute with 20 values each, compacted and rolled up."""
    cli("device", "add", "sw1", "192.0.2.1", "--interval", "60s")
    engine = bootstrap.services().engine
    [target] = targets.of_device(engine, "sw1")
    start_ms = TODAY - 2 * DAY
    polls = []
    for minute in range(0, 2880, 4):
        readings = [
            Reading("octets", minute * 977.0 * n, {"port": str(n)}, Kind.COUNTER, 64)
            for n in range(20)
        ]
        polls.append(Stored(target.id, start_ms + minute * MINUTE, ReadingSet.of(readings)))
    Writer(engine).write(polls, TODAY)
    now_ms = TODAY + 3 * 60 * MINUTE
    until_mono = time.monotonic() + 60
    compaction.compact(engine, now_ms, lambda _: None, until_mono)
    rollup_pass.roll_up(engine, now_ms, Kept(), lambda _: None, until_mono)


def test_sizes_are_computed_from_what_the_fleet_writes(cli: Cli, history: None) -> None:
    """Every part is measured; twice the devices take twice the room."""
    one = json.loads(cli("history", "size", "--json").out)
    assert one["fleet"] == {
        "devices": 1,
        "targets": 1,
        "polls_per_day": 1440.0,
        "samples_per_poll": 20.0,
    }
    parts = {item["part"]: item for item in one["items"]}
    assert list(parts) == ["fresh polls", "raw", "5 minutes", "1 hour", "total"]
    assert all(item["measured"] for item in one["items"])
    assert [parts[name]["kept_days"] for name in ("raw", "5 minutes", "1 hour")] == [35, 400, 730]
    assert parts["raw"]["bytes_per_sample"] < 1.5
    assert parts["1 hour"]["bytes_per_device_day"] < parts["5 minutes"]["bytes_per_device_day"]
    assert parts["total"]["bytes"] == sum(item["bytes"] for item in one["items"][:-1])

    many = json.loads(cli("history", "size", "--devices", "2000", "--json").out)
    assert many["devices"] == 2000
    assert many["items"][-1]["bytes"] == pytest.approx(2000 * parts["total"]["bytes"], rel=0.01)


def test_a_fleet_that_wrote_nothing_yet_gets_an_estimate(cli: Cli) -> None:
    """The table marks what is estimated, and a note says from what."""
    cli("device", "add", "sw1", "192.0.2.1")
    result = cli("history", "size", "--devices", "3000")
    head, *lines = result.out.splitlines()
    assert head.split("\t") == ["part", "kept", "bytes a sample", "a device and day", "size"]
    assert lines[1].split("\t")[:2] == ["raw", "35 d"]
    assert lines[-1].split("\t")[-1].startswith("~")
    assert "simulated day" in result.err


def test_a_planned_fleet_is_sized_without_a_database(cli: Cli) -> None:
    """The table says what is taken, what to plan for, and how each number comes about."""
    result = cli("size", "--devices", "3000", "--interfaces", "48", "--interval", "1m")
    head, *lines = result.out.splitlines()
    assert head.split("\t") == ["part", "takes", "plan for", "how"]
    assert "50 polls/s" in lines[0]
    assert "3,000 devices" in result.err
    found = json.loads(cli("size", "--devices", "3000", "--objects", "15", "--json").out)
    assert found["schema"] == "poller.size/1"
    assert found["fleet"]["samples_per_poll"] == 722
    assert [item["part"] for item in found["items"]][:4] == ["cores", "workers", "memory", "disk"]


def test_a_wrong_interval_is_refused_with_a_hint(cli: Cli) -> None:
    """A word that is no duration is refused, and the error says what is one."""
    refused = cli("size", "--devices", "3", "--interval", "soon")
    assert refused.code != 0
    assert '"soon" is not a duration' in refused.err
    assert "60s" in refused.err


def test_the_api_has_both_sizes(cli: Cli) -> None:
    """A reader of every site sees the same items as the commands; a token of one site does not."""
    cli("device", "add", "sw1", "192.0.2.1")
    services = bootstrap.services()
    client = api_clients.client(services, (Scope.READ,))
    planned = client.get("/api/v1/sizes/fleet", params={"devices": 3000}).json()
    assert planned["items"] == cli("size", "--devices", "3000", "--json").json["items"]
    stored = client.get("/api/v1/sizes/history", params={"devices": 3000}).json()
    assert stored["items"] == cli("history", "size", "--devices", "3000", "--json").json["items"]
    wrong = client.get("/api/v1/sizes/fleet", params={"devices": 3, "interval": "soon"})
    assert wrong.status_code == 422
    of_site = api_clients.client(services, (Scope.READ,), site="ber")
    assert of_site.get("/api/v1/sizes/history").status_code == 403
