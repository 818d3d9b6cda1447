"""`poller status`: leader, failures and overdue targets, from a real board and inventory."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from poller import bootstrap
from poller.cli import main
from poller.db import migrate
from poller.db.inventory import devices, inventory_feed, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.overview import State, Worker
from poller.domain.record.target_status import Status
from poller.presentation import health, store_check
from poller.presentation.store_check import StoreCheck
from poller.state.board.moves import Board
from poller.state.cluster import overview_reader, worker_registry
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys
from tests.integration.commands import Result

KEYS = Keys()
MINUTE_MS = 60_000


Run = Callable[..., Result]


@pytest.fixture
def status(
    home: Path, valkey_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run `poller status` on four devices with one target each, polled every minute."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = bootstrap.services()
    migrate.upgrade(services.engine)
    for number in range(1, 5):
        draft = DeviceDraft(f"sw{number}", "192.0.2.1")
        devices.add(services.engine, draft, [TargetDraft(collector="snmp", interval_ms=MINUTE_MS)])

    def run(*arguments: str) -> Result:
        code = main.run(["status", *arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def leader(redis_client: redis.Redis) -> Leadership:
    leadership = Leadership(redis_client, KEYS, 60_000)
    leadership.take()
    return leadership


def now_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def place(
    client: redis.Redis, leader: Leadership, due_ms: dict[int, int], queue: str = "poll.snmp"
) -> None:
    """Put targets on the board, each due at an instant; a living worker serves `poll.snmp`."""
    specs = [(TargetSpec(key, 1, queue, MINUTE_MS, 5_000), at_ms) for key, at_ms in due_ms.items()]
    Board(client, KEYS).place(leader.token, specs, 1)
    worker_registry.announce(client, KEYS, Worker("w", 0, 0, 7, 1, 2**20, queues=["poll.snmp"]))


def fail(client: redis.Redis, key: int, minutes: int, ok_ms: int = 0) -> None:
    """Store the status of a target that has failed for some minutes."""
    since_ms = now_ms(client) - minutes * MINUTE_MS
    left = Status(
        State.FAILING,
        since_ms,
        since_ms,
        since_ms,
        ok_ms,
        minutes,
        0,
        "timeout",
        f"no answer {key}",
    )
    client.hset(KEYS.status, str(key), left.pack())
    client.hincrby(KEYS.counts, "f", 1)
    client.hincrby(KEYS.counts, "u", -1)


def test_the_worst_come_first_with_name_age_and_reason(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """The order is the time without a good poll, in intervals of each target."""
    later = now_ms(redis_client) + MINUTE_MS
    place(redis_client, leader, dict.fromkeys((1, 2, 3), later))
    fail(redis_client, 1, minutes=3)
    fail(redis_client, 2, minutes=90)
    found = status("--failing", "--json").json
    assert [
        (i["device"], i["target"], i["state"], round(i["intervals"])) for i in found["items"]
    ] == [
        ("sw2", "snmp", "failing", 90),
        ("sw1", "snmp", "failing", 3),
    ]
    assert (found["failing"], found["overdue"], found["total"]) == (2, 0, 2)
    assert (found["items"][0]["error_code"], found["items"][0]["message"]) == (
        "timeout",
        "no answer 2",
    )
    lines = status("--failing").out.splitlines()
    assert lines[0].split("\t") == ["target", "state", "for", "intervals", "why"]
    assert lines[1].startswith("sw2/snmp\tfailing\t1 h 30 m\t90.")
    assert lines[1].endswith("\ttimeout (transient): no answer 2")


def test_a_limit_bounds_the_list_and_says_so(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """The totals still count all targets."""
    later = now_ms(redis_client) + MINUTE_MS
    place(redis_client, leader, dict.fromkeys((1, 2, 3), later))
    for key in (1, 2, 3):
        fail(redis_client, key, minutes=key)
    done = status("--failing", "--limit", "1")
    assert [line.split("\t")[0] for line in done.out.splitlines()[1:]] == ["sw3/snmp"]
    assert done.err == "3 targets failing; these are the worst, --limit 3 shows all\n"


def test_targets_that_wait_too_long_are_named_with_what_they_wait_for(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """One interval late is not listed; three are, and the verdict is not "on time"."""
    now = now_ms(redis_client)
    place(redis_client, leader, {1: now - MINUTE_MS, 2: now - 3 * MINUTE_MS, 3: now + MINUTE_MS})
    place(redis_client, leader, {4: now - 5 * MINUTE_MS}, queue="poll.acme;zone=dmz")
    redis_client.hset(KEYS.status, "2", Status(State.OK, 1, 1, now, now - 4 * MINUTE_MS).pack())
    found = status("--failing", "--json").json["items"]
    assert [(i["device"], i["overdue"], i["message"]) for i in found] == [
        ("sw4", True, "needs collector acme and tag zone=dmz; 1 worker live, without them"),
        ("sw2", True, "the workers do not keep up"),
    ]
    verdict = health.judge(overview_reader.read(redis_client, KEYS)).text
    assert "2 targets overdue by more than two of their intervals" in verdict
    assert "on time" not in verdict
    assert status("--strict").code == 1
    told = status("--json").json
    assert (told["unserved"], told["long_overdue"]) == ({"poll.acme;zone=dmz": 1}, 2)
    reason = "needs collector acme and tag zone=dmz; 1 worker live, without them"
    needs = "collector acme and tag zone=dmz"
    assert told["unroutable"] == [
        {"queue": "poll.acme;zone=dmz", "targets": 1, "needs": needs, "reason": reason}
    ]
    assert f"unserved   poll.acme;zone=dmz: 1 target; {reason}" in status().out
    assert told["queues"] == {"poll.acme;zone=dmz": 0, "poll.snmp": 0}


def test_without_troubles_the_list_is_a_sentence(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """A sentence replaces the empty table."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    done = status("--failing")
    assert done.err == "no target fails, and none is overdue by more than two of its intervals\n"
    assert status("--failing", "--json").json["items"] == []


def test_a_target_that_was_just_removed_is_left_out(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """A target that SQL does not hold any more has no name."""
    place(redis_client, leader, dict.fromkeys((1, 99), now_ms(redis_client) + MINUTE_MS))
    fail(redis_client, 1, minutes=1)
    fail(redis_client, 99, minutes=5)
    assert [i["device"] for i in status("--failing", "--json").json["items"]] == ["sw1"]


def test_the_cost_does_not_grow_with_the_fleet(
    status: Run, redis_client: redis.Redis, leader: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is read in pages, and SQL is queried once for the printed targets."""
    later = now_ms(redis_client) + MINUTE_MS
    keys = range(1, 6_001)
    place(redis_client, leader, dict.fromkeys(keys, later))
    for key in keys:
        fail(redis_client, key, minutes=key % 50 + 1)
    asked: list[int] = []
    ask = inventory_feed.poll_targets

    def counted(engine: Any, ids: Any) -> Any:
        asked.append(len(list(ids)))
        return ask(engine, ids)

    monkeypatch.setattr(inventory_feed, "poll_targets", counted)
    assert status("--failing", "--json").json["failing"] == 6_000
    assert asked == [50]


def test_a_limit_without_a_list_is_refused(status: Run) -> None:
    """No option is accepted and ignored."""
    refused = status("--limit", "3")
    assert refused.code == 2
    assert "--limit belongs to --failing" in refused.err


def test_the_leader_its_age_and_the_standbys_are_shown(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """People and programs see them; a missing leader is shown as none."""
    redis_client.zadd(
        KEYS.standbys, {"other:1": now_ms(redis_client), "another:2": now_ms(redis_client)}
    )
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    lines = status().out.splitlines()
    [line] = [line for line in lines if line.startswith("  leader")]
    assert line == f"  leader     {leader.name} for 0 s, epoch 1, 2 standing by"
    found = status("--json").json
    assert (found["leader"]["name"], found["leader"]["epoch"], found["standbys"]) == (
        leader.name,
        1,
        2,
    )
    leader.resign()
    assert "  leader     none, 2 standing by" in status().out


def test_one_of_a_kind_is_in_the_singular(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """`1 poll, 1 of 1 batch`, not `1 polls, 1 of 1 batches`."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    worker_registry.announce(
        redis_client, KEYS, Worker("w", 0, 0, 1, 1, 2**20, queues=["poll.snmp"])
    )
    assert "w: 1 poll, 1 of 1 batch, 1 MiB" in status().out
    assert "The only target is not polled yet." in status().out


def test_workers_of_one_name_are_counted_and_reported(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """Two living workers are two; a killed and restarted worker is one."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    now, names = now_ms(redis_client), ("twin", "twin", "again", "again")
    for name, instance in zip(names, ("a1", "b2", "c3", "d4"), strict=True):
        started_ms = now + 60_000 if instance == "d4" else now
        one = Worker(
            name,
            0,
            started_ms,
            3,
            0,
            2**20,
            {"zone": "dmz"},
            instance=instance,
            slots=16,
            polled_ms=now,
        )
        worker_registry.announce(redis_client, KEYS, one)
    out = status().out
    assert "worker     twin#a1: 3 polls, last 0 s ago, 0 of 16 batches, 1 MiB, zone=dmz" in out
    assert "worker     twin#b2: 3 polls" in out
    assert "names      2 workers are called twin: give each its own with -n" in out
    assert out.count("worker     again: 3 polls") == 1
    assert "again#" not in out


def test_corrupt_entries_do_not_hide_the_others(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """Whatever Redis holds, the other targets are listed."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    fail(redis_client, 1, minutes=1)
    redis_client.hset(KEYS.status, mapping={"2": "f", "3": "f{}", "4": "rubbish"})
    redis_client.hset(KEYS.spec, mapping={"2": "rubbish", "3": "1|x|1|poll.snmp"})
    assert [i["device"] for i in status("--failing", "--json").json["items"]] == ["sw1"]


def test_a_first_run_says_how_to_begin(status: Run, redis_client: redis.Redis) -> None:
    """Three commands are printed instead of zeros."""
    devices.remove(bootstrap.services().engine, ["sw1", "sw2", "sw3", "sw4"])
    assert status().code == 0
    lines = status().out.splitlines()
    assert lines[0] == "Nothing to poll yet. Three ways to begin:"
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["poller", "device", "add"],
        ["poller", "device", "import"],
        ["poller", "up", "--demo"],
    ]
    assert "0 ms" not in "".join(lines)


def test_texts_of_devices_do_not_reach_the_terminal_as_codes(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """Escape codes in an error message are printed as spaces."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    error = [now_ms(redis_client), 1, "sw1\x1b[2J", "snmp", "timeout", "no\x07 answer\nfrom it"]
    redis_client.lpush(KEYS.errors, json.dumps(error))
    out = status().out
    assert "sw1 [2J/snmp  timeout: no  answer from it" in out
    assert not {"\x1b", "\x07"} & set(out)


def test_results_in_a_spool_are_reported(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """The verdict and the worker's line name them; --strict exits with 1."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    full = Worker(
        "w", 0, 0, 7, 1, 2**20, queues=["poll.snmp"], spool_waiting=1280, spool_dropped=64
    )
    worker_registry.announce(redis_client, KEYS, full)
    done = status("--strict")
    assert done.code == 1
    assert "1,280 results cannot be written" in done.out.splitlines()[0]
    assert "w: 7 polls, 1 of 1 batch, 1 MiB, 1,280 results on its disk, 64 dropped" in done.out
    assert status("--json").json["workers"][0]["spool_waiting"] == 1280


def test_devices_in_sql_are_no_first_run(status: Run, redis_client: redis.Redis) -> None:
    """After a restore Redis is empty, and nothing runs yet: the inventory is what counts."""
    done = status()
    assert done.code == 1
    assert done.out.splitlines()[0] == (
        "No leader: nothing is being scheduled. No worker is running: nothing is being polled. "
        "4 targets of the database are not on the board yet."
    )
    found = status("--json")
    assert (found.code, found.json["level"], found.json["ready"]) == (1, "down", True)
    assert found.json["reasons"][0] == "No leader: nothing is being scheduled."


def test_a_database_without_tables_is_named(
    status: Run, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """It is no first run: the command that makes the tables is in the sentence."""
    sqlite3.connect(home / "empty.db").execute("VACUUM")
    monkeypatch.setenv("POLLER_DATABASE_URL", f"sqlite:///{home / 'empty.db'}")
    bootstrap.services.cache_clear()
    done = status()
    assert done.code == 5
    first = done.out.splitlines()[0]
    assert first.startswith("The database has no tables yet; run: poller db upgrade.")


def test_a_full_redis_is_named(status: Run, redis_client: redis.Redis, leader: Leadership) -> None:
    """The board can be read, but nothing can be claimed, finished or led; nothing is written."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    keys = redis_client.dbsize()
    redis_client.config_set("maxmemory", "1mb")
    try:
        done = status()
    finally:
        redis_client.config_set("maxmemory", "0")
    assert done.code == 5
    first = done.out.splitlines()[0]
    assert first.startswith("Redis takes no writes, so nothing can be scheduled: OutOfMemoryError")
    assert status().code == 0
    assert redis_client.dbsize() == keys


def test_a_silent_database_does_not_stop_the_status(
    status: Run,
    redis_client: redis.Redis,
    leader: Leadership,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The numbers of the board are printed all the same, and the silence is in the sentence."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    silent = threading.Event()
    monkeypatch.setattr(store_check.revision, "check", lambda _: silent.wait())
    monkeypatch.setattr(StoreCheck.__init__, "__defaults__", (0.05,))
    try:
        done = status()
    finally:
        silent.set()
    assert (done.code, done.out.splitlines()[0]) == (
        5,
        "SQL has not answered for 0 s. The only target is not polled yet.",
    )


def test_lent_slots_are_not_counted_as_busy(
    status: Run, redis_client: redis.Redis, leader: Leadership
) -> None:
    """A batch that only waits for slow devices lends its slot: 27 of 16 would be nonsense."""
    place(redis_client, leader, {1: now_ms(redis_client) + MINUTE_MS})
    busy = Worker("w", 0, 0, 7, 27, 2**20, queues=["poll.snmp"], slots=16, lent=11)
    worker_registry.announce(redis_client, KEYS, busy)
    assert "w: 7 polls, 16 of 16 batches and 11 that wait for slow devices, 1 MiB" in status().out


def test_targets_that_send_passwords_in_clear_are_counted_with_their_filter(
    status: Run, redis_client: redis.Redis, leader: Leadership, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only an enabled target with the plain API counts; the printed command lists it."""
    assert status("--json").json["clear_secrets"] == []
    engine = bootstrap.services().engine
    chosen: dict[str, dict[str, Any]] = {"plain": {"tls": False}, "tls": {}, "own": {"port": 1}}
    for name, options in chosen.items():
        targets.add(engine, "sw1", TargetDraft(name, "routeros", options))
    targets.add(engine, "sw2", TargetDraft("off", "routeros", {"tls": False}, enabled=False))

    where = "collector:routeros option:tls=false"
    assert status("--json").json["clear_secrets"] == [{"count": 1, "where": where}]
    line = f"1 target sends its password in clear: poller target list --where '{where}'"
    assert line in status().out
    assert main.run(["target", "list", "--where", where, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["items"]
    assert [(item["device"], item["name"]) for item in listed] == [("sw1", "plain"), ("sw2", "off")]
