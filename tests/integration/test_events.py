"""What happened reaches the log, the stream and SQL, whatever is down; and people can follow it."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import structlog

from poller import bootstrap, events
from poller.beat import recording
from poller.beat.attendance import Attendance
from poller.beat.leadership import Leader
from poller.beat.recording import Recorder
from poller.bootstrap import Services
from poller.cli import main
from poller.db import events as table
from poller.db import migrate
from poller.domain.events import Event, Kind, Wanted
from poller.domain.overview import Worker
from poller.settings import Settings
from poller.state import events as stream
from poller.state import overview, workers
from poller.state.leader import Leadership
from tests.acceptance.valkey import Valkey
from tests.conftest import wait_until

DOWN = Event(1_800_000_000_000, Kind.DEVICE_WENT_DOWN, "sw1 is down", "sw1", "snmp", 7, 3, {"code": "timeout"})
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def services(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    made = bootstrap.services()
    migrate.upgrade(made.engine)
    yield made
    made.engine.dispose()


def recorded(services: Services) -> list[Event]:
    return table.recent(services.engine, Wanted(), 20_000)


def in_stream(services: Services) -> list[Event | None]:
    return [entry.event for entry in stream.newest(services.redis, services.keys, 20_000)]


def away(services: Services, monkeypatch: pytest.MonkeyPatch) -> Services:
    """The same services, but nobody answers where Redis should be."""
    monkeypatch.setenv("POLLER_REDIS_URL", NOWHERE)
    return Services(Settings())


# Telling


def test_an_event_is_a_line_an_entry_and_soon_a_row(services: Services) -> None:
    """The same in all three places."""
    with structlog.testing.capture_logs() as lines:
        events.emit(services, [DOWN, dataclasses.replace(DOWN, kind=Kind.DEVICE_RECOVERED)])
    assert [(line["event"], line["log_level"], line["device"]) for line in lines] == [
        ("device_went_down", "warning", "sw1"),
        ("device_recovered", "info", "sw1"),
    ]
    assert lines[0]["code"] == "timeout"
    assert in_stream(services)[-1] == DOWN
    assert recorded(services) == []
    assert recording.copy(services) == 2
    assert recorded(services)[-1] == DOWN
    assert recording.copy(services) == 0


def test_a_whole_round_is_one_round_trip(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty-four devices behind one switch."""
    events.emit(services, [DOWN])  # connects
    sent: list[object] = []
    real = redis.connection.AbstractConnection.send_packed_command

    def counting(self: object, command: object, **options: object) -> None:
        sent.append(command)
        real(self, command, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
    events.emit(services, [DOWN] * 64)
    assert len(sent) == 1
    assert len(in_stream(services)) == 65


def test_telling_never_raises(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is away, or facts that nobody can write down: the log has the event, and says so."""
    silent = away(services, monkeypatch)
    loop: dict[str, object] = {}
    loop["self"] = loop
    with structlog.testing.capture_logs() as lines:
        events.emit(silent, [DOWN])
        events.emit(services, [dataclasses.replace(DOWN, data=loop)])
        events.emit(services, [])
    kinds_said = [line["event"] for line in lines]
    assert kinds_said == ["device_went_down", "events_not_published"] * 2
    assert in_stream(services) == []


def test_a_name_that_a_log_line_has_already_does_not_break_it(services: Services) -> None:
    """Data may be called anything."""
    with structlog.testing.capture_logs() as lines:
        events.emit(services, [dataclasses.replace(DOWN, data={"self": 0, "event": 1, "exc_info": 2, "device": 4})])
    [line] = lines
    assert (line["event"], line["message"], line["device"], line["device_"]) == (
        "device_went_down",
        "sw1 is down",
        "sw1",
        4,
    )
    assert len(in_stream(services)) == 1


def test_no_secret_gets_into_the_stream(services: Services) -> None:
    """Neither by a telling name nor quoted in a text."""
    services.redactor.remember("hunter2hunter2")
    told = dataclasses.replace(DOWN, message="refused hunter2hunter2", data={"community": "x", "url": "a://u:pw@h"})
    events.emit(services, [told])
    text = json.dumps(services.redis.xrange(services.keys.events))
    assert "hunter2" not in text
    assert "pw@" not in text
    [event] = in_stream(services)
    assert event is not None
    assert event.data["community"] == "********"


def test_the_stream_is_bounded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the setting, give or take what the server likes to drop at once."""
    monkeypatch.setenv("POLLER_EVENTS_LENGTH", "200")
    small = Services(Settings())
    for _ in range(20):
        events.emit(small, [DOWN] * 100)
    assert 200 <= services.redis.xlen(services.keys.events) <= 400


def test_the_overview_shows_the_last_ten(services: Services) -> None:
    """Newest first; strange entries are skipped."""
    events.emit(services, [dataclasses.replace(DOWN, message=f"n{number}") for number in range(15)])
    services.redis.xadd(services.keys.events, {"who": "knows"})
    shown = overview.read(services.redis, services.keys).events
    assert [event.message for event in shown] == [f"n{number}" for number in range(14, 5, -1)]


# Recording


def test_a_database_that_is_away_costs_no_event(services: Services) -> None:
    """They wait in the stream, and are recorded in order and once."""
    happened = [dataclasses.replace(DOWN, at_ms=DOWN.at_ms + number) for number in range(2_500)]
    events.emit(services, happened)
    path = services.settings.home / "poller.db"
    services.engine.dispose()
    files = [
        file for file in path.parent.iterdir() if file.name.startswith(path.name)
    ]  # its journal, too, if it has one
    away = path.parent / "away"
    away.mkdir()
    for file in files:
        file.rename(away / file.name)
    path.mkdir()
    with pytest.raises(bootstrap.errors.StoreError):
        recording.copy(services)
    path.rmdir()
    for file in files:
        (away / file.name).rename(file)
    while recording.copy(services):
        pass
    assert recorded(services) == happened[::-1]


def test_a_crash_between_the_two_stores_doubles_nothing(services: Services) -> None:
    """The rows were written, the note of it was not."""
    events.emit(services, [DOWN] * 5)
    recording.copy(services)
    services.redis.delete(services.keys.recorded)
    assert recording.copy(services) == 5
    assert len(recorded(services)) == 5


def test_one_event_that_the_database_refuses_holds_up_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named in the log."""
    good = dataclasses.replace(DOWN, message="good")
    events.emit(services, [good, DOWN, good])
    real = table.record

    def refusing(engine: object, entries: list[tuple[str, Event]]) -> None:
        if any(event.message == DOWN.message for _, event in entries):
            raise bootstrap.errors.StoreError("the database refused a statement")
        real(engine, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "record", refusing)
    with structlog.testing.capture_logs() as lines:
        assert recording.copy(services) == 3
    assert [event.message for event in recorded(services)] == ["good", "good"]
    assert [line["event"] for line in lines] == ["events_recorded_one_by_one", "event_refused"]


def test_events_that_were_dropped_before_they_were_recorded_are_not_dropped_silently(
    services: Services,
) -> None:
    """A database that was away for longer than the stream remembers."""
    events.emit(services, [DOWN])
    recording.copy(services)
    events.emit(services, [DOWN] * 1_500)
    with structlog.testing.capture_logs() as lines:
        recording.copy(services)
    assert lines == []
    events.emit(services, [DOWN] * 3_000)
    services.redis.xtrim(services.keys.events, maxlen=1_500, approximate=False)
    with structlog.testing.capture_logs() as lines:
        recording.copy(services)
    assert [line["event"] for line in lines] == ["events_not_recorded"]


# Who notices


def noticing(services: Services, lock_ms: int = 60_000) -> tuple[Leader, list[Event]]:
    told: list[Event] = []
    return Leader(Leadership(services.redis, services.keys, lock_ms), 1.0, note=told.append), told


def kinds(told: list[Event]) -> list[str]:
    return [event.kind.value.removeprefix("leadership_") for event in told]


def test_leaders_come_and_go_in_words(services: Services) -> None:
    """Taken once however often it is renewed, then handed over, then taken by the other."""
    (one, said_by_one), (two, said_by_two) = noticing(services), noticing(services)
    assert one.try_to_lead()
    assert one.try_to_lead()
    assert not two.try_to_lead()
    one.stop()
    assert two.try_to_lead()
    assert (kinds(said_by_one), kinds(said_by_two)) == (["taken", "handed_over"], ["taken"])
    assert [event.data["epoch"] for event in (*said_by_one, *said_by_two)] == [1, 1, 2]


def test_a_leader_whose_lock_ran_out_says_that_it_lost_it(services: Services) -> None:
    """Whether somebody else leads by now or it leads again itself: once each."""
    (one, said_by_one), (two, _) = noticing(services), noticing(services)
    one.try_to_lead()
    services.redis.delete(services.keys.lock)  # as if it had been paused for longer than its lock lasts
    one.try_to_lead()
    assert kinds(said_by_one) == ["taken", "lost", "taken"]
    services.redis.delete(services.keys.lock)
    two.try_to_lead()
    one.try_to_lead()
    one.try_to_lead()
    assert kinds(said_by_one) == ["taken", "lost", "taken", "lost"]


def test_the_next_leader_knows_whom_its_predecessor_saw(services: Services) -> None:
    """A change of leader makes no news of workers, and hides none."""
    told: list[Event] = []
    for name in ("stays", "leaves", "dies"):
        seen_ms = workers.announce(services.redis, services.keys, Worker(name, 0, 1, 0, 0, 0))
    Attendance(services, told.append).look(seen_ms)
    assert [event.kind for event in told] == [Kind.WORKER_JOINED] * 3
    told.clear()
    workers.leave(services.redis, services.keys, "leaves")
    next_one = Attendance(services, told.append)
    next_one.look(seen_ms)
    assert [event.message for event in told] == ["leaves said good-bye"]
    later_ms = seen_ms + workers.DEAD_AFTER_MS
    staying = dataclasses.asdict(Worker("stays", later_ms, 1, 0, 0, 0))
    services.redis.hset(services.keys.workers, "stays", json.dumps(staying))
    next_one.look(later_ms)
    next_one.look(later_ms)
    assert [event.message for event in told[1:]] == ["dies has said nothing for 10 s"]


def test_what_a_beat_noticed_while_redis_was_away_is_told_later(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder keeps it, publishes it and, since it leads, records it."""
    server = Valkey(tmp_path / "own")
    monkeypatch.setenv("POLLER_REDIS_URL", server.url)
    own, stopping = Services(Settings()), threading.Event()
    recorder = Recorder(own, stopping)
    leader = Leader(own.leadership, 1.0, note=recorder.note)
    recorder.start(leader)
    recorder.note(DOWN)
    server.start()
    try:
        leader.try_to_lead()
        wait_until(lambda: len(recorded(services)) == 2, "both events in SQL")
        assert {event.kind for event in recorded(services)} == {Kind.DEVICE_WENT_DOWN, Kind.LEADERSHIP_TAKEN}
        leader.stop()
        recorder.finish()
        newest = stream.newest(own.redis, own.keys, 1)[0].event
        assert newest is not None
        assert newest.kind is Kind.LEADERSHIP_HANDED_OVER
    finally:
        stopping.set()
        server.kill()


# Looking


def cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main.run(["events", *arguments])
    return (code, *capsys.readouterr())


def test_events_are_listed_from_sql_and_from_what_is_not_there_yet(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """Newest first, filtered alike in both places."""
    now_ms = time.time_ns() // 1_000_000
    old = dataclasses.replace(DOWN, at_ms=now_ms - 7_200_000, message="old")
    events.emit(services, [old, dataclasses.replace(old, device="sw2", message="other")])
    recording.copy(services)
    events.emit(services, [dataclasses.replace(DOWN, at_ms=now_ms, message="new", kind=Kind.DEVICE_RECOVERED)])
    found = lambda *words: [each["message"] for each in json.loads(cli(capsys, "--json", *words)[1])["items"]]  # noqa: E731
    assert found() == ["new", "other", "old"]
    assert found("--device", "sw1") == ["new", "old"]
    assert found("--kind", "device_recovered") == ["new"]
    assert found("--since", "1h") == ["new"]
    assert found("--limit", "1") == ["new"]
    recording.copy(services)
    assert found() == ["new", "other", "old"]


def test_without_redis_what_is_in_sql_is_shown(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that something may be missing."""
    events.emit(services, [DOWN])
    recording.copy(services)
    away(services, monkeypatch)
    bootstrap.services.cache_clear()
    code, out, err = cli(capsys)
    assert (code, "sw1 is down" in out) == (0, True)
    assert "Redis is not reachable" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--since", "soon"), '--since: "soon" is not a duration'),
        (("--kind", "moon"), "moon"),
        (("--kind", "breaker_opend"), "did you mean breaker_opened?"),
        (("--follow", "--limit", "3"), "--limit does not go with --follow"),
        (("--limit", "0"), "limit"),
    ],
)
def test_a_wrong_question_is_refused_with_its_name(
    services: Services, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """Exit code 2, and nothing on stdout."""
    code, out, err = cli(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


class Follower:
    """`poller events --follow --json` in a process of its own."""

    def __init__(self, url: str, *arguments: str) -> None:
        environment = {**os.environ, "POLLER_REDIS_URL": url}
        command = [sys.executable, "-m", "poller", "events", "--follow", *arguments]
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def next(self) -> str:
        return self._lines.get(timeout=30)


def test_following_survives_a_server_that_restarts(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its data and without it; Ctrl-C ends it without a word."""
    server = Valkey(tmp_path / "own")
    server.start()
    monkeypatch.setenv("POLLER_REDIS_URL", server.url)
    own = Services(Settings())
    events.emit(own, [dataclasses.replace(DOWN, message="before")])
    follower = Follower(server.url, "--json", "--kind", "device_went_down")
    try:
        assert json.loads(follower.next())["message"] == "before"
        for empty in (False, True):
            other = dataclasses.replace(DOWN, kind=Kind.DEVICE_RECOVERED)
            events.emit(own, [other, dataclasses.replace(DOWN, message=f"then {empty}")])
            fields = json.loads(follower.next())
            assert (fields["schema"], fields["message"]) == ("poller.event/1", f"then {empty}")
            server.kill()
            server.start(empty=empty)
        events.emit(own, [dataclasses.replace(DOWN, message="after")])
        assert json.loads(follower.next())["message"] == "after"
        follower.process.send_signal(signal.SIGINT)
        assert follower.process.wait(timeout=20) == 130
        assert follower.process.stderr is not None
        complaints = follower.process.stderr.read().splitlines()
        assert [line for line in complaints if not line.startswith("note: ")] == []
    finally:
        follower.process.kill()
        server.kill()


def test_following_without_a_server_is_an_outage(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who mistyped the address should not wait for ever."""
    away(services, monkeypatch)
    bootstrap.services.cache_clear()
    code, _, err = cli(capsys, "--follow")
    assert (code, "error[P301]" in err) == (5, True)


def test_a_repair_of_the_board_is_an_event(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    """One that found nothing is none."""
    assert main.run(["board", "repair"]) == 0
    assert in_stream(services) == []
    services.redis.sadd(services.keys.queues, "poll.snmp")
    services.redis.zadd(services.keys.due("poll.snmp"), {"4711": 1})
    assert main.run(["board", "repair"]) == 0
    capsys.readouterr()
    [event] = in_stream(services)
    assert event is not None
    assert (event.kind, event.data) == (Kind.BOARD_REPAIRED, {"stray_mended": 1})
