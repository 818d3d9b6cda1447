"""What happened reaches the log, the stream and SQL, whatever is down; and people can follow it."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import pytest
import redis
import structlog

from poller import bootstrap, event_publisher
from poller.beat import event_recorder
from poller.beat.event_recorder import Recorder
from poller.beat.leadership import Leader
from poller.beat.worker_watch import Attendance
from poller.bootstrap import Services
from poller.cli import main
from poller.db.record import event_rows as table
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import Worker
from poller.settings import Settings
from poller.state.cluster import event_stream as stream
from poller.state.cluster import overview_reader, worker_registry
from poller.state.cluster.leader_lock import Leadership
from tests.acceptance.valkey import Valkey
from tests.conftest import wait_until
from tests.integration.happenings import DOWN, away, in_stream, recorded


def test_an_event_is_a_line_an_entry_and_soon_a_row(services: Services) -> None:
    """The same in all three places."""
    with structlog.testing.capture_logs() as lines:
        event_publisher.emit(
            services, [DOWN, dataclasses.replace(DOWN, kind=Kind.DEVICE_RECOVERED)]
        )
    assert [(line["event"], line["log_level"], line["device"]) for line in lines] == [
        ("device_went_down", "warning", "sw1"),
        ("device_recovered", "info", "sw1"),
    ]
    assert lines[0]["code"] == "timeout"
    assert in_stream(services)[-1] == DOWN
    assert recorded(services) == []
    assert event_recorder.copy(services) == 2
    assert recorded(services)[-1] == DOWN
    assert event_recorder.copy(services) == 0


def test_a_whole_round_is_one_round_trip(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty-four devices behind one switch."""
    event_publisher.emit(services, [DOWN])  # connects
    sent: list[object] = []
    real = redis.connection.AbstractConnection.send_packed_command

    def counting(self: object, command: object, **options: object) -> None:
        sent.append(command)
        real(self, command, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
    event_publisher.emit(services, [DOWN] * 64)
    assert len(sent) == 1
    assert len(in_stream(services)) == 65


def test_telling_never_raises(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is away, or facts that nobody can write down: the log has the event, and says so."""
    silent = away(services, monkeypatch)
    loop: dict[str, object] = {}
    loop["self"] = loop
    with structlog.testing.capture_logs() as lines:
        event_publisher.emit(silent, [DOWN])
        event_publisher.emit(services, [dataclasses.replace(DOWN, data=loop)])
        event_publisher.emit(services, [])
    kinds_said = [line["event"] for line in lines]
    assert kinds_said == ["device_went_down", "events_not_published"] * 2
    assert in_stream(services) == []


def test_a_name_that_a_log_line_has_already_does_not_break_it(services: Services) -> None:
    """Data may be called anything."""
    with structlog.testing.capture_logs() as lines:
        event_publisher.emit(
            services,
            [dataclasses.replace(DOWN, data={"self": 0, "event": 1, "exc_info": 2, "device": 4})],
        )
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
    told = dataclasses.replace(
        DOWN, message="refused hunter2hunter2", data={"community": "x", "url": "a://u:pw@h"}
    )
    event_publisher.emit(services, [told])
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
        event_publisher.emit(small, [DOWN] * 100)
    assert 200 <= services.redis.xlen(services.keys.events) <= 400


def test_the_overview_shows_the_last_ten(services: Services) -> None:
    """Newest first; strange entries are skipped."""
    event_publisher.emit(
        services, [dataclasses.replace(DOWN, message=f"n{number}") for number in range(15)]
    )
    services.redis.xadd(services.keys.events, {"who": "knows"})
    shown = overview_reader.read(services.redis, services.keys).events
    assert [event.message for event in shown] == [f"n{number}" for number in range(14, 5, -1)]


def test_a_database_that_is_away_costs_no_event(services: Services) -> None:
    """They wait in the stream, and are recorded in order and once."""
    happened = [dataclasses.replace(DOWN, at_ms=DOWN.at_ms + number) for number in range(2_500)]
    event_publisher.emit(services, happened)
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
        event_recorder.copy(services)
    path.rmdir()
    for file in files:
        (away / file.name).rename(file)
    while event_recorder.copy(services):
        pass
    assert recorded(services) == happened[::-1]


def test_a_crash_between_the_two_stores_doubles_nothing(services: Services) -> None:
    """The rows were written, the note of it was not."""
    event_publisher.emit(services, [DOWN] * 5)
    event_recorder.copy(services)
    services.redis.delete(services.keys.recorded)
    assert event_recorder.copy(services) == 5
    assert len(recorded(services)) == 5


def test_one_event_that_the_database_refuses_holds_up_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named in the log."""
    good = dataclasses.replace(DOWN, message="good")
    event_publisher.emit(services, [good, DOWN, good])
    real = table.record

    def refusing(engine: object, entries: list[tuple[str, Event]]) -> None:
        if any(event.message == DOWN.message for _, event in entries):
            raise bootstrap.errors.StoreError("the database refused a statement")
        real(engine, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "record", refusing)
    with structlog.testing.capture_logs() as lines:
        assert event_recorder.copy(services) == 3
    assert [event.message for event in recorded(services)] == ["good", "good"]
    assert [line["event"] for line in lines] == ["events_recorded_one_by_one", "event_refused"]


def test_events_that_were_dropped_before_they_were_recorded_are_not_dropped_silently(
    services: Services,
) -> None:
    """A database that was away for longer than the stream remembers."""
    event_publisher.emit(services, [DOWN])
    event_recorder.copy(services)
    event_publisher.emit(services, [DOWN] * 1_500)
    with structlog.testing.capture_logs() as lines:
        event_recorder.copy(services)
    assert lines == []
    event_publisher.emit(services, [DOWN] * 3_000)
    services.redis.xtrim(services.keys.events, maxlen=1_500, approximate=False)
    with structlog.testing.capture_logs() as lines:
        event_recorder.copy(services)
    assert [line["event"] for line in lines] == ["events_not_recorded"]


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
    services.redis.delete(
        services.keys.lock
    )  # as if it had been paused for longer than its lock lasts
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
        seen_ms = worker_registry.announce(
            services.redis, services.keys, Worker(name, 0, 1, 0, 0, 0)
        )
    Attendance(services, told.append).look(seen_ms)
    assert [event.kind for event in told] == [Kind.WORKER_JOINED] * 3
    told.clear()
    worker_registry.leave(services.redis, services.keys, "leaves")
    next_one = Attendance(services, told.append)
    next_one.look(seen_ms)
    assert [event.message for event in told] == ["leaves said good-bye"]
    later_ms = seen_ms + worker_registry.DEAD_AFTER_MS
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
        assert {event.kind for event in recorded(services)} == {
            Kind.DEVICE_WENT_DOWN,
            Kind.LEADERSHIP_TAKEN,
        }
        leader.stop()
        recorder.finish()
        newest = stream.newest(own.redis, own.keys, 1)[0].event
        assert newest is not None
        assert newest.kind is Kind.LEADERSHIP_HANDED_OVER
    finally:
        stopping.set()
        server.kill()


def test_a_repair_of_the_board_is_an_event(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
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
