"""A response of a child is validated like the output of any collector."""

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

    frame_read = asyncio.run(read())
    assert frame_read is not None
    return frame_read


def test_an_outcome_arrives_unchanged() -> None:
    """The second response has no shape; the worker uses the one it has."""
    request = poll()
    outcome = Outcome(Result.PARTIAL, error_codes.TIMEOUT, "late", READINGS, answered_mono=7.25)
    first_frame = child_messages.pack_response(1, outcome, None)
    first = child_messages.unpack_response(*unframed(first_frame), request)
    assert first.readings is not None
    assert (first.result, first.error_code, first.message, first.answered_mono) == (
        outcome.result,
        outcome.error_code,
        outcome.message,
        outcome.answered_mono,
    )
    assert list(first.readings) == list(READINGS)

    second_frame = child_messages.pack_response(2, outcome, READINGS.series.id)
    assert b'"a"' not in second_frame
    second = child_messages.unpack_response(*unframed(second_frame), request)
    assert second.readings is not None
    assert second.readings.series is first.readings.series


def test_a_request_has_the_credential_and_the_shape_that_the_worker_has() -> None:
    """The first request has no shape."""
    request = poll()
    target = PollTarget(1, 2, "t", 1, "d", "127.0.0.1", "", "c", 1, 1, {"port": 161})
    head, _ = unframed(child_messages.pack_request(7, target, request, 1.0))
    assert head["shape"] is None

    response = child_messages.pack_response(1, Outcome(Result.OK, readings=READINGS), None)
    child_messages.unpack_response(*unframed(response), request)
    head, _ = unframed(child_messages.pack_request(7, target, request, 1.0))
    assert head["shape"] == READINGS.series.id
    assert head["options"] == {"port": 161}
    assert json.loads(head["credential"])["community"] == "hunter22"


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
def test_a_response_that_no_sound_child_sends_is_refused(head: dict[str, Any]) -> None:
    """A child with damaged memory may send anything."""
    with pytest.raises(child_messages.BadResponse):
        child_messages.unpack_response(head, b"{}[]x", poll())


def test_no_secret_of_the_poll_is_in_a_message() -> None:
    """The worker removes it even if the child did not."""
    outcome = child_messages.unpack_response(
        {"result": "failed", "code": "timeout", "message": "it is hunter22\n"}, b"", poll()
    )
    assert outcome.message == "it is ***"


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<II", 2**31, 0),
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 1, 0) + b"{",
    ],
)
def test_data_that_is_no_frame_is_refused(frame: bytes) -> None:
    """A frame that announces too large a size is refused before it is read."""
    with pytest.raises(frames.BadFrame):
        unframed(frame)


def test_a_frame_that_would_be_too_large_is_not_made() -> None:
    """The other side would refuse it."""
    with pytest.raises(frames.BadFrame, match="more than 32 MB"):
        frames.pack({}, bytes(frames.MAX_BYTES))
