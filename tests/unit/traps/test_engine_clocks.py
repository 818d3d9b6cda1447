"""A signed message counts when it is from now, by what its engine last said of its own clock."""

from __future__ import annotations

from poller.traps.engine_clocks import MAX_BOOTS, EngineClocks

ENGINE = b"\x80\x00\x1f\x88\x80"


def test_the_first_message_of_an_engine_sets_its_clock() -> None:
    """There is nothing to compare it with."""
    assert EngineClocks().is_timely(ENGINE, 3, 1000, now_s=50.0)


def test_a_message_older_than_the_window_is_refused() -> None:
    """What was recorded and is sent again."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 3, 1000, now_s=50.0)
    assert clocks.is_timely(ENGINE, 3, 1000, now_s=199.0)
    assert not clocks.is_timely(ENGINE, 3, 1000, now_s=201.0)
    assert clocks.is_timely(ENGINE, 3, 1160, now_s=201.0)
    assert not clocks.is_timely(ENGINE, 3, 1000, now_s=201.0)


def test_a_message_from_before_a_restart_is_refused() -> None:
    """Boots count up; what was signed before is history."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 3, 9000, now_s=0.0)
    assert clocks.is_timely(ENGINE, 4, 5, now_s=1.0)
    assert not clocks.is_timely(ENGINE, 3, 9001, now_s=2.0)
    assert clocks.is_timely(ENGINE, 4, 7, now_s=3.0)


def test_an_engine_that_ran_out_of_restarts_is_not_believed() -> None:
    """RFC 3414: its keys must be changed by a person."""
    assert not EngineClocks().is_timely(ENGINE, MAX_BOOTS, 1, now_s=0.0)


def test_engines_have_clocks_of_their_own() -> None:
    """One device's time says nothing of another's."""
    clocks = EngineClocks()
    clocks.is_timely(ENGINE, 9, 9000, now_s=0.0)
    assert clocks.is_timely(b"other", 1, 1, now_s=0.0)


def test_a_user_moves_only_its_own_idea_of_a_clock() -> None:
    """With one password every engine can be signed for: that must not make the messages of others old."""
    clocks = EngineClocks()
    assert clocks.is_timely(ENGINE, 5, 100, 0, "theirs")
    assert clocks.is_timely(ENGINE, MAX_BOOTS - 1, 0, 1, "forger")
    assert clocks.is_timely(ENGINE, 5, 102, 2, "theirs")
    assert not clocks.is_timely(ENGINE, 5, 102, 2, "forger")
