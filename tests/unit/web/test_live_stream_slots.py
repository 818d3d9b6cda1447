"""The streams of a web process are shared by pages and programs."""

from __future__ import annotations

from poller.web.api.live_stream import StreamSlots


def test_programs_have_at_most_half_of_the_streams() -> None:
    """One token must not take the streams of all pages."""
    slots = StreamSlots(4)
    slots.open = slots.of_programs = 1
    assert not slots.is_full_for_programs
    slots.open = slots.of_programs = 2
    assert slots.is_full_for_programs
    assert not slots.is_full


def test_pages_may_take_all_streams() -> None:
    """Programs are refused once pages have taken everything."""
    slots = StreamSlots(4)
    slots.open = 4
    assert slots.is_full_for_programs
