"""SQL stores each event once and finds events by age, kind and device."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record import event_rows
from poller.domain.record.event_kinds import Event, EventFilter, Kind


def event(
    at_ms: int, kind: Kind = Kind.BREAKER_OPENED, device: str = "", **fields: object
) -> Event:
    return Event(at_ms, kind, f"at {at_ms}", device, **fields)  # type: ignore[arg-type]


def record(engine: Engine, *happened: Event) -> None:
    event_rows.record(engine, [(f"{number}-0", each) for number, each in enumerate(happened)])


def test_an_event_comes_back_as_it_was_recorded(engine: Engine) -> None:
    """Every field of an event survives, also odd text and the largest ids."""
    made = event(
        5,
        device="sw‘1’ %",
        target="snmp",
        target_id=2**62,
        device_id=7,
        data={"a": [1, {"b": None}], "ü": "%s"},
    )
    plain = event(4, Kind.CLOCK_MOVED)
    record(engine, made, plain)
    assert event_rows.recent(engine, EventFilter(), 10) == [made, plain]


def test_an_entry_is_recorded_once(engine: Engine) -> None:
    """An entry that two leaders copy, or one leader copies again after a crash, is stored once."""
    page = [(f"{number}-0", event(number)) for number in range(1, 101)]
    event_rows.record(engine, page[:60])
    event_rows.record(engine, page)
    assert [each.at_ms for each in event_rows.recent(engine, EventFilter(), 1000)] == list(
        range(100, 0, -1)
    )


def test_an_empty_page_is_accepted(engine: Engine) -> None:
    """An empty page of events makes no statement."""
    event_rows.record(engine, [])
    assert event_rows.recent(engine, EventFilter(), 10) == []


def test_events_are_found_by_kind_device_and_age(engine: Engine) -> None:
    """Conditions combine, and the newest events come first, up to the limit."""
    one, two = event(1, Kind.DEVICE_WENT_DOWN, "sw1"), event(2, Kind.DEVICE_WENT_DOWN, "sw2")
    three, four = event(3, Kind.DEVICE_RECOVERED, "sw1"), event(4, Kind.CLOCK_MOVED)
    record(engine, one, two, three, four)
    assert event_rows.recent(engine, EventFilter(), 3) == [four, three, two]
    assert event_rows.recent(engine, EventFilter(device="sw1"), 9) == [three, one]
    assert event_rows.recent(engine, EventFilter((Kind.DEVICE_WENT_DOWN,)), 9) == [two, one]
    assert event_rows.recent(engine, EventFilter((Kind.DEVICE_WENT_DOWN, Kind.CLOCK_MOVED)), 9) == [
        four,
        two,
        one,
    ]
    assert event_rows.recent(engine, EventFilter(since_ms=3), 9) == [four, three]
    assert event_rows.recent(engine, EventFilter((Kind.DEVICE_WENT_DOWN,), "sw1", 2), 9) == []


def test_events_of_a_later_version_are_left_out(engine: Engine) -> None:
    """An older program on the same database shows the events that it knows."""
    record(engine, event(1), event(2))
    with sql.writing(engine) as conn:
        conn.exec_driver_sql("UPDATE events SET kind = 'the_moon_rose' WHERE at_ms = 2")
    assert event_rows.recent(engine, EventFilter(), 9) == [event(1)]
