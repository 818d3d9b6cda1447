"""Filters of commands: changes of all that match, their dry run and question, and lists."""

from __future__ import annotations

import pytest
import redis

from poller import bootstrap, event_publisher
from poller.db.inventory import targets
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from tests.integration.commands import Cli, Result, ok

MINUTE_MS = 60_000


@pytest.fixture
def fleet(
    cli: Cli, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """sw1 to sw4 at two sites with snmp, r1 with ping: in SQL, without a scheduler."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    for number in range(1, 5):
        site = "fra" if number < 4 else "ber"
        words = ("--site", site, "--tag", f"rack{number % 2}", "--collector", "snmp")
        ok(cli("device", "add", f"sw{number}", f"10.1.0.{number}", *words))
    ok(cli("device", "add", "r1", "10.2.0.1", "--collector", "ping"))
    return cli


def names(result: Result) -> list[str]:
    return [item["name"] for item in ok(result).json["items"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--site", "fra", "--tag", "rack1"), ["sw1", "sw3"]),
        (("--site", ""), ["r1"]),
        (("--site", "fra", "--site", "ber", "--name", "*[34]"), []),
        (("--name", "sw*", "--address", "10.1.0.2/31"), ["sw2", "sw3"]),
        (("--where", "collector:ping"), ["r1"]),
        (("--where", "site:fra", "--tag", "rack0"), ["sw2"]),
        (("--state", "unknown", "--collector", "snmp"), ["sw1", "sw2", "sw3", "sw4"]),
        (("--state", "disabled"), []),
    ],
)
def test_devices_are_listed_by_filter(
    fleet: Cli, words: tuple[str, ...], expected: list[str]
) -> None:
    """Options and --where select the same way."""
    assert names(fleet("device", "list", "--json", *words)) == expected


def test_a_filtered_list_has_pages_and_its_own_total(fleet: Cli) -> None:
    """The note counts the devices that match, not all."""
    listed = ok(fleet("device", "list", "--name", "sw*", "--limit", "2"))
    assert "4 devices in all; more with --after sw2" in listed.err
    more = fleet("device", "list", "--name", "sw*", "--after", "sw2", "--json")
    assert names(more) == ["sw3", "sw4"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--site", "frq"), "did you mean fra?"),
        (("--collector", "snpm"), "did you mean snmp?"),
        (("--state", "broken"), "one of ok, degraded, failing"),
        (("--address", "10.1.0.0/99"), 'address: "10.1.0.0/99" is not a network'),
        (("--where", "site:fra", "--site", "ber"), "site is selected twice"),
        (("--where", "sw1"), "write name:sw1"),
        (("--site", "fra", "--site", "bre"), "did you mean ber?"),
        (("--site", "fra", "--where", ""), "--where: the filter is empty"),
    ],
)
def test_a_wrong_filter_is_refused(fleet: Cli, words: tuple[str, ...], message: str) -> None:
    """An unknown site or collector is an error, not an empty list."""
    refused = fleet("device", "list", *words)
    assert refused.code in (2, 3)
    assert message in refused.err


def test_devices_are_edited_by_filter_after_a_dry_run_and_a_number(fleet: Cli) -> None:
    """A dry run changes nothing and says the number; without a terminal --yes is needed."""
    edit = ("device", "edit", "--where", "site:fra", "--site", "muc", "--add-tag", "new")
    planned = ok(fleet(*edit, "--dry-run"))
    assert planned.out == "would change 3 devices: sw1, sw2, sw3\n"
    assert "note: would make the new site muc" in planned.err
    assert "no credential named" in fleet(*edit, "--credential", "none", "--dry-run").err
    assert fleet(*edit).code == 2
    assert "this would change 3 devices (sw1, sw2, sw3)" in fleet(*edit).err
    assert "not 4; nothing was done" in fleet(*edit, "--confirm", "4").err
    assert "no site named" in fleet("device", "list", "--site", "muc").err

    changed = ok(fleet(*edit, "--yes", "--json")).json
    assert changed["changed"] == 3
    moved = ok(fleet("device", "list", "--site", "muc", "--json")).json["items"]
    assert [(item["name"], item["tags"]) for item in moved] == [
        ("sw1", ["new", "rack1"]),
        ("sw2", ["new", "rack0"]),
        ("sw3", ["new", "rack1"]),
    ]
    ok(fleet("device", "edit", "sw1", "--remove-tag", "rack1", "--add-tag", "z"))
    assert ok(fleet("device", "show", "sw1", "--json")).json["tags"] == ["new", "z"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("device", "edit", "--where", "site:fra", "--rename", "x"), "--rename is for one device"),
        (("device", "edit", "sw1", "--where", "site:fra", "--disable"), "not both"),
        (("device", "edit", "--disable"), "names or a filter, neither is there"),
        (("device", "edit", "sw1", "--tag", "a", "--add-tag", "b"), "choose one of both"),
        (("device", "edit", "sw1", "--add-tag", "a b"), 'the tag "a b" is not one word'),
        (("device", "edit", "--where", "tag:none", "--disable"), "no device matches"),
        (("device", "rm"), "names or a filter, neither is there"),
        (("device", "rm", "--where", " ", "--yes"), "--where: the filter is empty"),
        (("device", "rm", "--where", "site:fra,", "--yes"), "a value beside a comma is empty"),
        (("device", "edit", "--where", " ", "--disable", "--yes"), "--where: the filter is empty"),
        (("target", "edit", "--where", "", "--disable", "--yes"), "--where: the filter is empty"),
        (("deadletter", "drop", "--where", " ", "--yes"), "--where: the filter is empty"),
        (("breaker", "open", "--where", " ", "--yes"), "--where: the filter is empty"),
        (("poll", "--site", "fra", "--confirm", "2"), "poll 3 targets now (sw1/snmp"),
        (("breaker", "open", "sw1", "--confirm", "2"), "open the 1 breaker"),
        (("target", "rm", "--yes"), "names or a filter, neither is there"),
        (("target", "edit", "--where", "name:*", "-o", "port=1", "--yes"), "add collector:ping"),
        (("target", "edit", "--where", "name:*", "--rename", "x"), "--rename is for one target"),
        (("target", "edit", "--where", "name:*", "--interval", "1s", "--yes"), "r1/ping: "),
        (("poll",), "names or a filter, neither is there"),
        (("breaker", "reset"), "names or a filter, neither is there"),
        (("status", "--site", "fra"), "a filter belongs to --failing"),
    ],
)
def test_a_change_without_a_clear_selection_is_refused(
    fleet: Cli, words: tuple[str, ...], message: str
) -> None:
    """The error says what was wrong; nothing changes."""
    before = ok(fleet("device", "export")).out
    refused = fleet(*words)
    assert refused.code in (2, 3)
    assert message in refused.err
    assert ok(fleet("device", "export")).out == before


def test_devices_are_removed_by_filter(fleet: Cli) -> None:
    """The question says how many; the answer how many targets went with them."""
    remove = ("device", "rm", "--name", "sw?", "--site", "fra")
    assert (
        "would remove 3 devices and all their targets: sw1" in ok(fleet(*remove, "--dry-run")).out
    )
    assert ok(fleet(*remove, "--yes")).out == "removed 3 devices and 3 targets\n"
    assert names(fleet("device", "list", "--json")) == ["r1", "sw4"]


def test_targets_are_added_edited_and_removed_by_filter(fleet: Cli) -> None:
    """A target is added where there is none of its name; each keeps its own options."""
    add = ("target", "add", "--where", "address:10.0.0.0/8", "--collector", "ping")
    assert ok(fleet(*add, "--yes")).out == (
        "added 4 targets; 1 device had a target of that name already\n"
    )
    edit = ("target", "edit", "--where", "collector:snmp site:fra", "-o", "port=1161")
    assert ok(fleet(*edit, "--interval", "5m", "--yes")).out == "changed 3 targets\n"
    listed = ok(fleet("target", "list", "--collector", "snmp", "--json")).json["items"]
    assert [(t["device"], t["interval_ms"], t["options"]) for t in listed] == [
        ("sw1", 300_000, {"port": 1161}),
        ("sw2", 300_000, {"port": 1161}),
        ("sw3", 300_000, {"port": 1161}),
        ("sw4", 60_000, {}),
    ]
    assert ok(fleet("target", "rm", "--collector", "ping", "--yes")).out == "removed 5 targets\n"
    assert "would remove target sw1/snmp" in ok(fleet("target", "rm", "sw1/snmp", "--dry-run")).out


def _fail(names_: list[str]) -> dict[str, int]:
    """Put every target on the board; those of the named devices fail with an open breaker."""
    services = bootstrap.services()
    board = services.board
    ids = {target.device: target.id for target in targets.listing(services.engine)}
    far = board.now_ms() + MINUTE_MS
    specs = [(TargetSpec(i, 1, "poll.snmp", MINUTE_MS, 5_000), far) for i in ids.values()]
    board.place("", specs, 1)
    now_ms = board.now_ms()
    opened = Breaker(2, now_ms - MINUTE_MS, now_ms + MINUTE_MS)
    failing = Status(
        state=State.FAILING,
        since_ms=now_ms - 700_000,
        run_ms=now_ms,
        finished_ms=now_ms,
        failures=7,
        code="timeout",
        message="no answer",
        breaker=opened,
    )
    for name in names_:
        services.redis.hset(services.keys.status, str(ids[name]), failing.pack())
    board.scripts.run("recount", [])
    return ids


def test_states_and_codes_come_from_the_board(fleet: Cli) -> None:
    """A failing target selects its device; an operator resets exactly these."""
    _fail(["sw1", "sw4"])
    assert names(fleet("device", "list", "--state", "failing", "--json")) == ["sw1", "sw4"]
    assert names(fleet("device", "list", "--state", "open", "--site", "fra", "--json")) == ["sw1"]
    assert names(fleet("device", "list", "--code", "auth_failed", "--json")) == []
    failing = fleet("status", "--failing", "--site", "ber", "--json").json["items"]
    assert [item["device"] for item in failing] == ["sw4"]

    reset = ("breaker", "reset", "--state", "open", "--code", "timeout")
    assert "would reset the 2 breakers of these targets" in ok(fleet(*reset, "--dry-run")).out
    assert fleet(*reset).code == 2
    assert ok(fleet(*reset, "--yes")).out == "reset 2 breakers\n"
    assert names(fleet("device", "list", "--state", "open", "--json")) == []


def test_a_poll_of_all_that_match_is_requested(fleet: Cli) -> None:
    """Disabled targets are left out; without a worker the command says so."""
    ids = _fail([])
    ok(fleet("device", "edit", "sw2", "--disable"))
    assert "no running worker takes target" in fleet("poll", "--site", "fra").err
    services = bootstrap.services()
    urgent = services.redis.zrange(services.keys.urgent("poll.snmp"), 0, -1)
    assert sorted(map(int, urgent)) == sorted([ids["sw1"], ids["sw3"]])
    assert "every target that matches is disabled" in fleet("poll", "--name", "sw2").err


def test_runs_and_events_of_all_that_match(fleet: Cli) -> None:
    """A filter of devices keeps their own events, a filter of targets those of these targets."""
    services = bootstrap.services()
    now_ms = services.board.now_ms()
    events = [
        Event(now_ms, Kind.DEVICE_WENT_DOWN, "down", device=name) for name in ("sw1", "sw4", "r1")
    ]
    event_publisher.publish(services, events)

    def seen(*words: str) -> list[str]:
        return sorted(e["device"] for e in ok(fleet("events", "--json", *words)).json["items"])

    assert seen("--site", "fra") == ["sw1"]
    assert seen("--collector", "snmp") == ["sw1", "sw4"]
    assert seen("--name", "r*", "--name", "sw4") == ["r1", "sw4"]
    assert ok(fleet("runs", "--site", "fra", "--json")).json["items"] == []
    assert fleet("runs", "--site", "nowhere").code == 3
