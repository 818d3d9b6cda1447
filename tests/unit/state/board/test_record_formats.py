"""Records of the board, packed and parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.inventory.poll_target import TargetSpec
from poller.state.board import record_formats
from poller.state.board.record_formats import Opening, Spec

numbers = st.integers(0, 10**15)


@given(version=numbers, interval_ms=numbers, timeout_ms=numbers, queue=st.text(min_size=1))
def test_a_spec_survives_packing(
    version: int, interval_ms: int, timeout_ms: int, queue: str
) -> None:
    """Every queue name is possible, also one with the separator."""
    text = record_formats.pack_spec(TargetSpec(1, version, queue, interval_ms, timeout_ms))
    assert record_formats.parse_spec(text) == Spec(version, interval_ms, timeout_ms, queue)
    assert record_formats.version_and_queue(text) == (version, queue)


def test_a_disabled_target_has_no_spec() -> None:
    """An empty record removes the target from the board."""
    assert record_formats.pack_spec(TargetSpec(1, 1, "q", 1_000, 5, enabled=False)) == ""


@pytest.mark.parametrize("text", [None, "", "rubbish", "1|2|3|", "1|2|3", "x|2|3|q", "1|²|3|q"])
def test_a_damaged_spec_is_a_missing_one(text: str | None) -> None:
    """A damaged record has no interval."""
    assert record_formats.parse_spec(text) is None
    assert record_formats.interval_ms(text) == 0


@pytest.mark.parametrize(("run", "plan_ms"), [("t|5|0|", 5), ("t||0|", None), ("t|x|0|", None)])
def test_a_run_may_lack_its_planned_instant(run: str, plan_ms: int | None) -> None:
    """A damaged instant is None."""
    assert record_formats.plan_ms(run) == plan_ms


def test_an_opening_ends_at_its_instant() -> None:
    """The operator's name may contain the separator."""
    opening = Opening(until_ms=10, since_ms=5, who="ann|ops")
    assert record_formats.parse_opening(opening.pack(), now_ms=9) == opening
    assert record_formats.parse_opening(opening.pack(), now_ms=10) is None


def test_an_opening_may_have_a_reason() -> None:
    """It may contain the separator; a record of a version without reasons has none."""
    opening = Opening(until_ms=10, since_ms=5, who="ann", reason="new | firmware")
    assert record_formats.parse_opening(opening.pack(), now_ms=9) == opening
    assert record_formats.parse_opening("10|5|ann", now_ms=9) == Opening(10, 5, "ann")


@pytest.mark.parametrize("text", [None, "", "rubbish", "10|x|ann", "10"])
def test_a_damaged_opening_is_a_missing_one(text: str | None) -> None:
    """A damaged record opens no breaker."""
    assert record_formats.parse_opening(text, now_ms=0) is None
