"""Events reach the log, the stream and SQL, also after an outage of Redis or SQL."""

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
from poller.beat.event_recorder import EventRecorder
from poller.beat.leadership import Leader
from poller.beat.worker_watch import WorkerWatch
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
from tests.integration.happenings import DOWN, in_stream, recorded, without_redis


def test_an_event_is_a_line_an_entry_and_soon_a_row(services: Services) -> None:
    """All three places hold the same event."""
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
    """Sixty-four events of one batch are sent together."""
    event_publisher.emit(services, [DOWN])  # connects
    sent: list[object] = []
    real = redis.connection.AbstractConnection.send_packed_command

    def counting(self: object, command: object, **options: object) -> None:
        if threading.current_thread() is threading.main_thread():  # not a thread of another test
            sent.append(command)
        real(self, command, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
    event_publisher.emit(services, [DOWN] * 64)
    assert len(sent) == 1
    assert len(in_stream(services)) == 65


def test_emit_never_raises(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Redis, or with data that cannot be stored, the log has the event and the failure."""
    silent = without_redis(services, monkeypatch)
    loop: dict[str, object] = {}
    loop["self"] = loop
    with structlog.testing.capture_logs() as lines:
        event_publisher.emit(silent, [DOWN])
        event_publisher.emit(services, [dataclasses.replace(DOWN, data=loop)])
        event_publisher.emit(services, [])
    logged = [line["event"] for line in lines]
    assert logged == ["device_went_down", "events_not_published"] * 2
    assert in_stream(services) == []


def test_a_data_name_that_the_log_line_reserves_is_changed(services: Services) -> None:
    """The data of an event may have any names."""
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
    """Fields with secret names and secrets in texts are masked."""
    services.redactor.remember("hunter2hunter2")
    secret = dataclasses.replace(
        DOWN, message="refused hunter2hunter2", data={"community": "x", "url": "a://u:pw@h"}
    )
    event_publisher.emit(services, [secret])
    text = json.dumps(services.redis.xrange(services.keys.events))
    assert "hunter2" not in text
    assert "pw@" not in text
    [event] = in_stream(services)
    assert event is not None
    assert event.data["community"] == "********"


def test_the_stream_is_bounded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of the stream is about that of the setting; the server trims whole nodes."""
    monkeypatch.setenv("POLLER_EVENTS_LENGTH", "200")
    small = Services(Settings())
    for _ in range(20):
        event_publisher.emit(small, [DOWN] * 100)
    assert 200 <= services.redis.xlen(services.keys.events) <= 400


def test_the_overview_has_the_newest_events_first(services: Services) -> None:
    """Entries of other programs are skipped, and the oldest events are left out."""
    count = overview_reader.EVENTS + 5
    event_publisher.emit(
        services, [dataclasses.replace(DOWN, message=f"n{number}") for number in range(count)]
    )
    services.redis.xadd(services.keys.events, {"who": "knows"})
    shown = overview_reader.read(services.redis, services.keys).events
    assert [event.message for event in shown] == [f"n{n}" for n in range(count - 1, 5, -1)]


def test_an_outage_of_the_database_loses_no_event(services: Services) -> None:
    """Events wait in the stream, and are copied in order and once."""
    happened = [dataclasses.replace(DOWN, at_ms=DOWN.at_ms + number) for number in range(2_500)]
    event_publisher.emit(services, happened)
    path = services.settings.home / "poller.db"
    services.engine.dispose()
    # The journal too, if there is one.
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
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
    """The rows were written, the position in the stream was not."""
    event_publisher.emit(services, [DOWN] * 5)
    event_recorder.copy(services)
    services.redis.delete(services.keys.recorded)
    assert event_recorder.copy(services) == 5
    assert len(recorded(services)) == 5


def test_an_event_that_the_database_refuses_does_not_hold_up_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log names the refused event."""
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


def test_events_dropped_from_the_stream_before_the_copy_are_logged(
    services: Services,
) -> None:
    """The outage of the database was longer than the stream."""
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


class Recorded:
    """An EventLog that keeps its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind.value.removeprefix("leadership_") for event in self.events]


def new_leader(services: Services) -> tuple[Leader, Recorded]:
    log = Recorded()
    return Leader(Leadership(services.redis, services.keys, 60_000), 1.0, events=log), log


def test_a_change_of_leaders_makes_events(services: Services) -> None:
    """Leadership is taken once however often it is renewed, then handed over, then taken again."""
    one, log_of_one = new_leader(services)
    two, log_of_two = new_leader(services)
    assert one.try_to_lead()
    assert one.try_to_lead()
    assert not two.try_to_lead()
    one.stop()
    assert two.try_to_lead()
    assert (log_of_one.kinds, log_of_two.kinds) == (["taken", "handed_over"], ["taken"])
    events = (*log_of_one.events, *log_of_two.events)
    assert [event.data["epoch"] for event in events] == [1, 1, 2]


def test_a_lock_that_ran_out_makes_one_event(services: Services) -> None:
    """The same holds when another beat leads by now, and when this one leads again."""
    one, log_of_one = new_leader(services)
    two, _ = new_leader(services)
    one.try_to_lead()
    services.redis.delete(services.keys.lock)  # as after a pause longer than the lock
    one.try_to_lead()
    assert log_of_one.kinds == ["taken", "lost", "taken"]
    services.redis.delete(services.keys.lock)
    two.try_to_lead()
    one.try_to_lead()
    one.try_to_lead()
    assert log_of_one.kinds == ["taken", "lost", "taken", "lost"]


def test_the_next_leader_continues_the_list_of_present_workers(services: Services) -> None:
    """A change of leader makes no event of a worker, and loses none."""

    def check(watch: WorkerWatch, now_ms: int) -> list[Event]:
        return watch.check(worker_registry.registered(services.redis, services.keys), now_ms)

    for name in ("stays", "leaves", "dies"):
        seen_ms = worker_registry.announce(
            services.redis, services.keys, Worker(name, 0, 1, 0, 0, 0)
        )
    events = check(WorkerWatch(services), seen_ms)
    assert [event.kind for event in events] == [Kind.WORKER_JOINED] * 3
    worker_registry.leave(services.redis, services.keys, "leaves")
    next_one = WorkerWatch(services)
    events = check(next_one, seen_ms)
    assert [event.message for event in events] == ["leaves stopped and left"]
    later_ms = seen_ms + worker_registry.DEAD_AFTER_MS
    staying = dataclasses.asdict(Worker("stays", later_ms, 1, 0, 0, 0))
    services.redis.hset(services.keys.workers, "stays", json.dumps(staying))
    events = check(next_one, later_ms)
    assert [event.message for event in events] == ["dies sent no heartbeat for 10 s"]
    assert check(next_one, later_ms) == []


def test_events_of_a_beat_without_redis_are_published_later(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder holds them, publishes them and, while this beat leads, copies them to SQL."""
    server = Valkey(tmp_path / "own")
    monkeypatch.setenv("POLLER_REDIS_URL", server.url)
    own = Services(Settings())
    stopping = threading.Event()
    recorder = EventRecorder(own, stopping)
    leader = Leader(own.leadership, 1.0, events=recorder)
    recorder.start(leader)
    recorder.record(DOWN)
    server.start()
    try:
        leader.try_to_lead()
        wait_until(lambda: len(recorded(services)) == 2, "both events in SQL")
        assert {event.kind for event in recorded(services)} == {
            Kind.DEVICE_WENT_DOWN,
            Kind.LEADERSHIP_TAKEN,
        }
        leader.stop()
        recorder.close()
        newest = stream.newest(own.redis, own.keys, 1)[0].event
        assert newest is not None
        assert newest.kind is Kind.LEADERSHIP_HANDED_OVER
    finally:
        stopping.set()
        server.kill()


def test_a_repair_of_the_board_is_an_event(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repair without damage makes no event."""
    assert main.run(["board", "repair"]) == 0
    assert in_stream(services) == []
    services.redis.sadd(services.keys.queues, "poll.snmp")
    services.redis.zadd(services.keys.due("poll.snmp"), {"4711": 1})
    assert main.run(["board", "repair"]) == 0
    capsys.readouterr()
    [event] = in_stream(services)
    assert event is not None
    assert (event.kind, event.data) == (Kind.BOARD_REPAIRED, {"stray_mended": 1})
