"""An event survives the stream, and what is none does no harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.record import event_kinds
from poller.domain.record.event_kinds import Event, EventFilter, Kind

NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, categories=["L", "N", "P"]), max_size=40
)
IDS = st.none() | st.integers(0, 2**63 - 1)


@given(
    st.builds(
        Event,
        at_ms=st.integers(0, 2**63 - 1),
        kind=st.sampled_from(Kind),
        message=NAMES,
        device=NAMES,
        target=NAMES,
        target_id=IDS,
        device_id=IDS,
        data=st.dictionaries(
            NAMES, st.integers() | NAMES | st.none() | st.lists(NAMES, max_size=3), max_size=4
        ),
    )
)
def test_an_event_comes_back_from_its_entry(event: Event) -> None:
    """Every field, also those that say nothing."""
    assert event_kinds.unpack(event_kinds.pack(event)) == event


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "clock_moved"},
        {"at_ms": "1", "kind": "the_moon_rose"},
        {"at_ms": "soon", "kind": "clock_moved"},
        {"at_ms": "-1", "kind": "clock_moved"},
        {"at_ms": str(2**63), "kind": "clock_moved"},
        {"at_ms": "1", "kind": "clock_moved", "target_id": "x"},
        {"at_ms": "1", "kind": "clock_moved", "data": "[1]"},
        {"at_ms": "1", "kind": "clock_moved", "data": "{"},
        {"at_ms": "1", "kind": "clock_moved", "data": "[" * 200_000},
    ],
)
def test_an_entry_that_is_no_event_is_none(fields: dict[str, str]) -> None:
    """Other programs and later versions may write to the stream."""
    assert event_kinds.unpack(fields) is None


def test_texts_are_made_fit_for_any_database_and_terminal() -> None:
    """One line, bounded, and without the one character PostgreSQL refuses."""
    fields = {
        "at_ms": "1",
        "kind": "clock_moved",
        "message": "a\x00b\n\x1b[31mc" + "x" * 900,
        "device": "d" * 300,
    }
    event = event_kinds.unpack({**fields, "data": json.dumps({"text": "a\x00b"})})
    assert event is not None
    assert event.message.startswith("a b [31mc")
    assert (len(event.message), len(event.device)) == (512, event_kinds.NAME_LIMIT)
    assert "\x00" not in event.data["text"]


def test_a_filter_selects_events() -> None:
    """A filter selects by kind, device and age; an empty one selects all."""
    event = Event(1_000, Kind.WORKER_LOST, "w is gone", device="sw1")
    assert EventFilter().accepts(event)
    assert EventFilter((Kind.WORKER_LOST, Kind.CLOCK_MOVED), "sw1", 1_000).accepts(event)
    assert not EventFilter((Kind.CLOCK_MOVED,)).accepts(event)
    assert not EventFilter(device="sw2").accepts(event)
    assert not EventFilter(since_ms=1_001).accepts(event)


def test_kinds_are_in_the_past_tense() -> None:
    """The closed list, as programs see it: names are only ever added."""
    assert {kind.value.rpartition("_")[2] for kind in Kind} == {
        "down",
        "recovered",
        "failed",
        "opened",
        "closed",
        "made",
        "requeued",
        "cleared",
        "taken",
        "over",
        "lost",
        "explained",
        "joined",
        "left",
        "rebuilt",
        "repaired",
        "moved",
        "stalled",
        "drained",
        "refused",
        "isolated",
        "quarantined",
        "released",
        "received",
        "added",
        "vanished",
        "overdue",
        "back",
        "paused",
        "resumed",
        "applied",
        "fired",
        "resolved",
    }
