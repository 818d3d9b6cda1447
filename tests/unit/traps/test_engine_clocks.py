"""A signed message must be recent, by the clock of its engine."""

from __future__ import annotations

from poller.traps.engine_clocks import MAX_BOOTS, EngineClocks

ENGINE = b"\x80\x00\x1f\x88\x80"


def test_the_first_message_of_an_engine_sets_its_clock() -> None:
    """No earlier clock exists to compare it with."""
    assert EngineClocks().is_timely(ENGINE, 3, 1000, now_s=50.0)


def test_a_message_older_than_the_window_is_refused() -> None:
    """A recorded message that is sent again is old."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 3, 1000, now_s=50.0)
    assert clocks.is_timely(ENGINE, 3, 1000, now_s=199.0)
    assert not clocks.is_timely(ENGINE, 3, 1000, now_s=201.0)
    assert clocks.is_timely(ENGINE, 3, 1160, now_s=201.0)
    assert not clocks.is_timely(ENGINE, 3, 1000, now_s=201.0)


def test_a_message_from_before_a_restart_is_refused() -> None:
    """The number of boots only grows."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 3, 9000, now_s=0.0)
    assert clocks.is_timely(ENGINE, 4, 5, now_s=1.0)
    assert not clocks.is_timely(ENGINE, 3, 9001, now_s=2.0)
    assert clocks.is_timely(ENGINE, 4, 7, now_s=3.0)


def test_an_engine_with_the_maximum_of_restarts_is_refused() -> None:
    """RFC 3414: an administrator must change its keys."""
    assert not EngineClocks().is_timely(ENGINE, MAX_BOOTS, 1, now_s=0.0)


def test_engines_have_clocks_of_their_own() -> None:
    """The clock of one engine says nothing about another engine."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 9, 9000, now_s=0.0)
    assert clocks.is_timely(b"other", 1, 1, now_s=0.0)


def test_a_user_moves_only_its_own_clock() -> None:
    """One password can sign for every engine, and must not make the messages of other users old."""
    clocks = EngineClocks()
    assert clocks.is_timely(ENGINE, 5, 100, 0, "theirs")
    assert clocks.is_timely(ENGINE, MAX_BOOTS - 1, 0, 1, "forger")
    assert clocks.is_timely(ENGINE, 5, 102, 2, "theirs")
    assert not clocks.is_timely(ENGINE, 5, 102, 2, "forger")
