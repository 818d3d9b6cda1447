"""`poller readings --rate`: the rates of counters for people and for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from poller import bootstrap
from poller.cli import main
from poller.db import migrate
from poller.db.inventory import devices, targets
from poller.db.record import stored_readings
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import Kind, Reading, ReadingSet

MINUTE = 60_000
Polled = Callable[..., None]


@pytest.fixture
def engine(home: Path) -> Engine:
    made = bootstrap.services().engine
    migrate.upgrade(made)
    devices.add(made, DeviceDraft("sw1", "192.0.2.1"), [TargetDraft(collector="snmp")])
    return made


@pytest.fixture
def polled(engine: Engine) -> Polled:
    """Store a poll of sw1 some minutes ago: octets by interface name, indexes in that order."""

    now = time.time_ns() // 1_000_000

    def store(minutes_ago: float, octets: dict[str, float], uptime_s: float = 1e6) -> None:
        found = [Reading("sysUpTime", (uptime_s - minutes_ago * 60) * 100)]
        for index, (name, value) in enumerate(octets.items(), 1):
            labels = {"ifIndex": str(index), "ifName": name, "ifAlias": f"port {minutes_ago}"}
            found += [
                Reading("ifHighSpeed", 100, labels),
                Reading("ifInOctets", value, labels, Kind.COUNTER, 32),
            ]
        key = targets.show(engine, "sw1", "snmp").id
        stored = stored_readings.Stored(
            key, now - round(minutes_ago * MINUTE), ReadingSet.of(found)
        )
        stored_readings.Writer(engine).write([stored], now)

    return store


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main.run(["readings", "sw1", "--rate", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_newest_rate_of_every_counter(
    polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """Raw numbers have a verdict; an interface that moved and got a new description is the same."""
    polled(2, {"eth0": 0, "eth1": 2**32 - 600})
    polled(1, {"eth1": 5_400, "eth0": 600_000})
    found = asked(capsys)
    assert (found["schema"], found["device"], found["total"]) == ("poller.rates/1", "sw1", 2)
    by_name = {item["labels"]["ifName"]: item for item in found["items"]}
    assert by_name["eth0"]["per_second"] == pytest.approx(10_000, rel=0.01)
    assert (by_name["eth0"]["verdict"], by_name["eth0"]["reason"]) == ("ok", "")
    assert by_name["eth1"]["per_second"] == pytest.approx(100, rel=0.01)
    assert by_name["eth1"]["verdict"] == "wrap"
    assert by_name["eth1"]["seconds"] == pytest.approx(60, abs=1)
    assert 60 <= by_name["eth1"]["age_seconds"] < 120
    assert "rates" not in by_name["eth1"]


def test_a_span_has_all_its_rates(polled: Polled, capsys: pytest.CaptureFixture[str]) -> None:
    """The first rate is included: the poll before the span is read for it."""
    for minutes_ago in range(9, 0, -1):
        polled(minutes_ago, {"eth0": (10 - minutes_ago) * 6_000})
    [item] = asked(capsys, "--since", "5m30s")["items"]
    assert [rate["verdict"] for rate in item["rates"]] == ["ok"] * 5
    assert item["mean_per_second"] == pytest.approx(100, rel=0.01)
    assert item["max_per_second"] >= item["mean_per_second"] * 0.99


def test_a_restart_and_an_impossible_rate_have_no_value(
    polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is printed, and the claimed rate is a field of its own."""
    polled(3, {"eth0": 5})
    polled(2, {"eth0": 600}, uptime_s=140)
    polled(1, {"eth0": 4e9}, uptime_s=140)
    [item] = asked(capsys, "--since", "10m")["items"]
    assert [(rate["verdict"], rate["per_second"]) for rate in item["rates"]] == [
        ("first", None),
        ("reset", None),
        ("implausible", None),
    ]
    assert item["rates"][1]["reason"] == "the device restarted"
    assert item["claimed_per_second"] == pytest.approx(4e9 / 60, rel=0.01)
    assert (item["mean_per_second"], item["max_per_second"]) == (None, None)


def test_one_poll_gives_no_rate_but_a_note(
    engine: Engine, polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """The note has the time until the next poll; there is another note before the first poll."""
    assert main.run(["readings", "sw1", "--rate"]) == 0
    assert "nothing has been read yet" in capsys.readouterr().err
    polled(1, {"eth0": 5})
    assert main.run(["readings", "sw1", "--rate"]) == 0
    told = capsys.readouterr()
    assert "sw1/snmp has one poll, and a rate takes two: the next one is due within 1m" in told.err
    assert "\tfirst\t" in told.out


def test_a_pipe_gets_plain_words_with_units(
    polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """Octets are printed as bit/s, without a plot."""
    polled(2, {"eth0": 0})
    polled(1, {"eth0": 75_000_000})
    assert main.run(["readings", "sw1", "--rate"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split("\t") == ["target", "metric", "labels", "rate", "verdict", "age", "why"]
    cells = row.split("\t")
    assert cells[:2] == ["snmp", "ifInOctets"]
    assert "ifAlias=port 1" in cells[2]
    assert (cells[3], cells[4]) == ("10 Mbit/s", "ok")


def test_a_terminal_gets_a_plot(
    polled: Polled, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal shows the identifying label instead of all labels."""
    for minutes_ago, octets in [(4, 0), (3, 0), (2, 75_000_000), (1, 150_000_000)]:
        polled(minutes_ago, {"eth0": octets})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "140")
    assert main.run(["readings", "sw1", "--rate"]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert " ifName=eth0 " in row
    assert "ifAlias" not in row
    assert "┄▁█" in row


def test_rates_are_filtered_by_metric_and_limited(
    polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """A filter by name and a limit reduce the list."""
    for minutes_ago in (2, 1):
        polled(minutes_ago, {"eth0": 0, "eth1": 0})
    found = asked(capsys, "--limit", "1")
    assert (len(found["items"]), found["total"]) == (1, 2)
    assert asked(capsys, "--metric", "HC")["items"] == []
    assert main.run(["readings", "sw1", "--rate", "--limit", "1"]) == 0
    assert "2 counters in all; more with --limit 2" in capsys.readouterr().err


def test_a_counter_of_64_bits_replaces_its_short_twin(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has each counter once, as on the page; --metric still finds the short one."""
    now = time.time_ns() // 1_000_000
    key = targets.show(engine, "sw1", "snmp").id
    for minutes_ago in (2, 1):
        value = 1e6 - minutes_ago
        found = [
            Reading("ifInOctets", value, {"ifIndex": "1"}, Kind.COUNTER, 32),
            Reading("ifHCInOctets", value, {"ifIndex": "1"}, Kind.COUNTER, 64),
            Reading("ifInErrors", value, {"ifIndex": "1"}, Kind.COUNTER, 32),
        ]
        at_ms = now - minutes_ago * MINUTE
        stored = stored_readings.Stored(key, at_ms, ReadingSet.of(found))
        stored_readings.Writer(engine).write([stored], now)

    assert sorted(item["metric"] for item in asked(capsys)["items"]) == [
        "ifHCInOctets",
        "ifInErrors",
    ]
    assert asked(capsys, "--metric", "ifInOct")["items"][0]["metric"] == "ifInOctets"


def test_a_target_may_identify_series_by_index(
    engine: Engine, polled: Polled, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option applies to polls that were stored before it was set."""
    polled(2, {"eth0": 0, "eth1": 600_000})
    polled(1, {"eth1": 606_000, "eth0": 60})
    assert [item["verdict"] for item in asked(capsys)["items"]] == ["ok", "ok"]
    targets.edit(engine, "sw1", "snmp", TargetDraft(options={"identity": "ifIndex"}))
    assert [item["verdict"] for item in asked(capsys)["items"]] == ["ok", "reset"]


def test_a_bad_time_names_its_option(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """The hint shows how a duration is written."""
    assert main.run(["readings", "sw1", "--since", "2x"]) == 2
    assert "try: write 60s, 5m or 1h30m" in capsys.readouterr().err
    assert main.run(["readings", "sw1", "--rate", "--since", "yesterday"]) == 2
    assert "--since" in capsys.readouterr().err
