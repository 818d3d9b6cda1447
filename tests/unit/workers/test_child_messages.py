"""What a child answers is believed only as far as any collector is."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

import pytest
from pydantic import SecretStr

from poller.collectors.api import Poll
from poller.collectors.credentials import Community
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.workers.guard.child import child_messages, frames

READINGS = ReadingSet.of([Reading("a", 1.5, {"x": "é"}), Reading("b", float("inf"))])


def poll(secret: str = "hunter22") -> Poll:
    return Poll(1, "d", "127.0.0.1", None, Community(community=SecretStr(secret)), 0.0, {})


def unframed(frame: bytes) -> tuple[dict[str, Any], bytes]:
    async def read() -> tuple[dict[str, Any], bytes] | None:
        stream = asyncio.StreamReader()
        stream.feed_data(frame)
        stream.feed_eof()
        return await frames.read(stream)

    found = asyncio.run(read())
    assert found is not None
    return found


def test_an_outcome_comes_back_as_it_was() -> None:
    """With all its readings; the second time the shape is not told again, and is the very same object."""
    asked, outcome = poll(), Outcome(Result.PARTIAL, error_codes.TIMEOUT, "late", READINGS)
    first = child_messages.outcome(*unframed(child_messages.answer(1, outcome, None)), asked)
    assert first == outcome or (
        first.readings is not None and list(first.readings) == list(READINGS)
    )
    frame = child_messages.answer(2, outcome, READINGS.series.id)
    assert b'"a"' not in frame
    second = child_messages.outcome(*unframed(frame), asked)
    assert first.readings is not None
    assert second.readings is not None
    assert second.readings.series is first.readings.series


def test_a_question_tells_the_shape_that_is_known() -> None:
    """And the credential, which is why nobody prints it."""
    asked = poll()
    target = PollTarget(1, 2, "t", 1, "d", "127.0.0.1", "", "c", 1, 1, {"port": 161})
    assert unframed(child_messages.ask(7, target, asked, 1.0))[0]["shape"] is None
    child_messages.outcome(
        *unframed(child_messages.answer(1, Outcome(Result.OK, readings=READINGS), None)), asked
    )
    head, _ = unframed(child_messages.ask(7, target, asked, 1.0))
    assert head["shape"] == READINGS.series.id
    assert (head["options"], json.loads(head["credential"])["community"]) == (
        {"port": 161},
        "hunter22",
    )


@pytest.mark.parametrize(
    "head",
    [
        {"result": "ok", "code": "timeout"},
        {"result": "failed", "code": ""},
        {"result": "failed", "code": "my_own_code"},
        {"result": "stale", "code": "timeout"},
        {"result": "wonderful", "code": ""},
        {"code": ""},
        {"result": "ok", "code": "", "shape": 5},
        {"result": "ok", "code": "", "shape": 0},
        {"result": "ok", "code": "", "shape": "x"},
    ],
)
def test_what_no_child_of_ours_says_is_refused(head: dict[str, Any]) -> None:
    """A damaged memory may say anything."""
    with pytest.raises(child_messages.BadAnswer):
        child_messages.outcome(head, b"{}[]x", poll())


def test_no_secret_of_the_poll_is_in_a_message() -> None:
    """Whatever the child's own checks did."""
    found = child_messages.outcome(
        {"result": "failed", "code": "timeout", "message": "it is hunter22\n"}, b"", poll()
    )
    assert found.message == "it is ***"


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<II", 2**31, 0),
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 1, 0) + b"{",
    ],
)
def test_what_is_no_frame_is_refused(frame: bytes) -> None:
    """Before it is read, if it says that it is too large."""
    with pytest.raises(frames.BadFrame):
        unframed(frame)


def test_a_frame_that_would_be_too_large_is_not_made() -> None:
    """Nobody could read it."""
    with pytest.raises(frames.BadFrame, match="more than 32 MB"):
        frames.pack({}, bytes(frames.MOST_BYTES))
