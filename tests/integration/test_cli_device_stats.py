"""`poller device stats`: the daily statistics for people and for programs."""

from __future__ import annotations

import json
import time

import pytest

from poller import bootstrap
from poller.db.inventory import targets
from poller.db.record import target_statistics
from poller.domain.record.target_day import DAY_MS, TargetDay
from tests.integration.commands import Cli

TODAY = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS


@pytest.fixture
def target_id(cli: Cli) -> int:
    """The target of `sw1`, with statistics of three days; one is 40 days old."""
    assert cli("device", "add", "sw1", "192.0.2.1").code == 0
    engine = bootstrap.services().engine
    [target] = targets.of_device(engine, "sw1")
    days = [
        TargetDay(TODAY - DAY_MS, target.id, 1440, 1430, 6, 4, 1, 20, 18, 40, 900, 7),
        TargetDay(TODAY - 2 * DAY_MS, target.id, unpolled=3),
        TargetDay(TODAY - 40 * DAY_MS, target.id, 1, 1),
        TargetDay(TODAY - DAY_MS, target.id + 1, 1, 1),
    ]
    target_statistics.write(engine, days)
    return target.id


def test_days_are_listed_newest_first(cli: Cli, target_id: int) -> None:
    """Availability counts full and partial answers; a day without polls has none."""
    items = json.loads(cli("device", "stats", "sw1", "--json").out)["items"]
    assert [item["polls"] for item in items] == [1440, 0]
    assert [item["availability"] for item in items] == [1436 / 1440, None]
    assert items[0]["day"] == time.strftime("%Y-%m-%d", time.gmtime((TODAY - DAY_MS) / 1000))
    longer = cli("device", "stats", "sw1", "--days", "60", "--json")
    assert len(json.loads(longer.out)["items"]) == 3


def test_the_table_has_units(cli: Cli, target_id: int) -> None:
    """A duration that was not measured is no zero."""
    head, newest, oldest = cli("device", "stats", "sw1").out.splitlines()
    assert head.split("\t")[:4] == ["day", "target", "polls", "available"]
    assert newest.split("\t")[2:5] == ["1440", "99.72 %", "4"]
    assert newest.split("\t")[-5:] == ["20 ms", "18 ms", "40 ms", "900 ms", "7 ms"]
    assert oldest.split("\t")[3] == "–"


def test_a_device_without_statistics_says_when_they_come(cli: Cli) -> None:
    """It is no error."""
    cli("device", "add", "sw1", "192.0.2.1")
    result = cli("device", "stats", "sw1")
    assert result.code == 0
    assert "poller jobs run daily-statistics" in result.err


def test_an_unknown_device_is_named(cli: Cli) -> None:
    """With the nearest name, as other commands do."""
    cli("device", "add", "sw1", "192.0.2.1")
    result = cli("device", "stats", "sw2")
    assert result.code != 0
    assert "sw2" in result.err
