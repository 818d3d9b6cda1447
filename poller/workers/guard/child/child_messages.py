"""The messages between worker and child: a poll and its outcome.

The credential is in the clear here and on the socket, and nowhere else. A response is validated
like the output of any collector: a child whose memory is damaged may send anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.yielded_readings import YieldedReadings
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result, clean
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack
from poller.workers.guard.child import frames

#: The key of the last response's shape in the poll's memory: the child sends a shape only when it
#: changes.
_SHAPE = "poller.child"
_RESULTS = (Result.OK, Result.PARTIAL, Result.FAILED)


class BadResponse(ValueError):
    """The child sent a response that no sound child sends."""


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """The first message to a child: everything it needs before its first poll."""

    collector: str
    memory_mb: int
    threads: int
    stuck: int
    targets: int
    session: Mapping[str, Any]  # the limits of the collector's sessions
    sessions: int
    log_level: str
    log_format: str


def pack_request(number: int, target: PollTarget, poll: Poll, budget_s: float) -> bytes:
    shape = poll.memory.get(_SHAPE)
    credential = poll.credential
    return frames.pack(
        {
            "poll": number,
            "target_id": target.id,
            "version": target.version,
            "device": target.device,
            "address": target.address,
            "options": dict(target.options),
            "credential": credential.to_json() if credential else None,
            "budget_s": budget_s,
            "is_behind": poll.is_behind,
            "shape": shape.id if shape else None,
        }
    )


def pack_response(number: int, outcome: Outcome, known_shape: int | None) -> bytes:
    """Return the response frame; it has the shape unless the worker has it. Raises BadFrame."""
    head: dict[str, Any] = {
        "poll": number,
        "result": outcome.result.value,
        "code": outcome.error_code,
        "message": outcome.message,
        "answered": outcome.answered_mono,
    }
    if outcome.readings is None:
        return frames.pack(head)

    series = outcome.readings.series
    shape = b"" if series.id == known_shape else series.to_json().encode()
    head["shape"] = len(shape)
    return frames.pack(head, shape + pack(outcome.readings.values))


def unpack_response(head: Mapping[str, Any], body: bytes, poll: Poll) -> Outcome:
    """Return the outcome in a response to `poll`. Raises BadResponse."""
    try:
        result = Result(head["result"])
        code = str(head["code"])
        _check(result, code)

        # All processes of a host share the monotonic clock.
        answered_mono = float(head.get("answered", 0.0))
        readings = None
        if "shape" in head:
            shape_length = int(head["shape"])
            readings = _unpack_readings(shape_length, body, poll.memory)
    except BadResponse:
        raise
    except Exception as error:  # noqa: BLE001  door: a child with damaged memory sends anything
        raise BadResponse(f"an answer that cannot be read ({type(error).__name__})") from None

    message = clean(poll_runner.scrub(str(head.get("message", "")), poll.credential))
    if result is Result.OK:
        return Outcome(result, message=message, readings=readings, answered_mono=answered_mono)
    return Outcome(result, error_codes.TABLE[code].code, message, readings, answered_mono)


def _check(result: Result, code: str) -> None:
    """Raise BadResponse unless OK comes without a code and any other result with a listed one."""
    fits = code in error_codes.TABLE
    if result is Result.OK:
        fits = not code
    if result not in _RESULTS or not fits:
        raise BadResponse(f"an outcome {result.value} whose code does not fit")


def _unpack_readings(shape_length: int, body: bytes, memory: dict[str, Any]) -> ReadingSet | None:
    """Return the readings of a response body: a shape, unless the worker has it, and values."""
    if shape_length:
        text = body[:shape_length].decode()
        memory[_SHAPE] = SeriesSet.from_json(text)

    values = unpack(body[shape_length:])
    gathered = YieldedReadings(memory)
    gathered.take(ReadingSet(memory[_SHAPE], values))
    return gathered.readings()
