"""The trust in a collector after crashes, suspicions and stuck threads."""

from __future__ import annotations

from poller.domain.failures import quarantine
from poller.domain.failures.quarantine import Cause, Incident, Record, Rules, Trust

RULES = Rules(crashes=3, window_ms=1_000)


def after(*doubts: tuple[int, Cause, int]) -> Record:
    found = Record()
    for at_ms, cause, target_id in doubts:
        found = quarantine.record(found, Incident(at_ms, cause, f"at {at_ms}", target_id), RULES)
    return found


def test_one_crash_isolates_and_the_third_within_the_window_quarantines() -> None:
    """The record has the text of the last crash and the instant of each change."""
    assert after((10, Cause.CRASH, 1)).trust is Trust.ISOLATED
    assert after((10, Cause.CRASH, 1), (20, Cause.CRASH, 2)).trust is Trust.ISOLATED
    third = after((10, Cause.CRASH, 1), (20, Cause.CRASH, 2), (30, Cause.CRASH, 3))
    assert (third.trust, third.since_ms, third.isolated_ms, third.reason) == (
        Trust.QUARANTINED,
        30,
        10,
        "at 30",
    )


def test_crashes_beyond_the_window_are_forgotten() -> None:
    """A collector that crashes now and then stays in its process."""
    rare = after(*((at_ms, Cause.CRASH, 1) for at_ms in range(0, 10_000, 600)))
    assert rare.trust is Trust.ISOLATED
    assert len(rare.crashes_ms) == 2


def test_more_crashes_leave_a_quarantine_as_it_is() -> None:
    """Workers that have not read the quarantine yet may still report crashes."""
    many = after(*((at_ms, Cause.CRASH, 1) for at_ms in (1, 2, 3, 4)))
    assert (many.quarantined_ms, len(many.crashes_ms)) == (3, 4)


def test_suspicions_of_different_targets_prove_nothing() -> None:
    """A third of the fleet killed at once, with the code of any target running, changes nothing."""
    assert after(*((1, Cause.SUSPICION, target_id) for target_id in range(100))).trust is Trust.OK


def test_two_suspicions_of_one_target_isolate_and_are_no_crash() -> None:
    """Two suspicions isolate a collector; no number of them quarantines it."""
    assert after((1, Cause.SUSPICION, 7), (2, Cause.SUSPICION, 7)).trust is Trust.ISOLATED
    assert after((1, Cause.SUSPICION, 7), (1_002, Cause.SUSPICION, 7)).trust is Trust.OK
    assert after(*((at_ms, Cause.SUSPICION, 7) for at_ms in range(50))).trust is Trust.ISOLATED


def test_threads_that_hang_isolate_and_never_quarantine() -> None:
    """Devices that do not answer are no crash of the collector."""
    assert after(*((at_ms, Cause.STUCK, 0) for at_ms in range(50))).trust is Trust.ISOLATED


def test_a_record_is_stored_and_read_again() -> None:
    """A text of another form is an empty record."""
    found = after((1, Cause.SUSPICION, 7), (10, Cause.CRASH, 1))
    assert quarantine.unpack(found.pack()) == found
    for text in ("", "[]", "{}", '{"crashes_ms": 3}', "null", '{"crashes_ms": ["x"]}'):
        assert quarantine.unpack(text) == Record()
