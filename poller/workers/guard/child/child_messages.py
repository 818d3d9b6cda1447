"""A poll and its outcome as messages. The credential is in the clear here, and nowhere else but in this socket.

What comes back is checked as if the collector had yielded it to us: a child whose memory is damaged may say anything.
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

#: The shape of the last answer, in the poll's memory: the child tells one only when it is another.
_SHAPE = "poller.child"
_RESULTS = (Result.OK, Result.PARTIAL, Result.FAILED)


class BadAnswer(ValueError):
    """The child said what no child of ours says."""


@dataclass(frozen=True, slots=True)
class _Said:
    result: Result
    error_code: str

    def check(self) -> None:
        """A good poll has no code, any other one of the list."""
        good = self.result is Result.OK
        known = not self.error_code if good else self.error_code in error_codes.TABLE
        if self.result not in _RESULTS or not known:
            raise BadAnswer(f"an outcome {self.result.value} whose code does not fit")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a child must know before its first poll."""

    collector: str
    memory_mb: int
    threads: int
    stuck: int
    targets: int
    session: Mapping[str, Any]  # its limits
    sessions: int
    log_level: str
    log_format: str


def ask(number: int, target: PollTarget, poll: Poll, budget_s: float) -> bytes:
    shape = poll.memory.get(_SHAPE)
    return frames.pack(
        {
            "poll": number,
            "target_id": target.id,
            "version": target.version,
            "device": target.device,
            "address": target.address,
            "options": dict(target.options),
            "credential": poll.credential.to_json() if poll.credential else None,
            "budget_s": budget_s,
            "shape": shape.id if shape else None,
        }
    )


def answer(number: int, outcome: Outcome, known_shape: int | None) -> bytes:
    """Raises BadFrame when there is too much to say."""
    head: dict[str, Any] = {
        "poll": number,
        "result": outcome.result.value,
        "code": outcome.error_code,
        "message": outcome.message,
    }
    if outcome.readings is None:
        return frames.pack(head)
    series = outcome.readings.series
    shape = b"" if series.id == known_shape else series.to_json().encode()
    return frames.pack({**head, "shape": len(shape)}, shape + pack(outcome.readings.values))


def outcome(head: dict[str, Any], body: bytes, poll: Poll) -> Outcome:
    """Raises BadAnswer."""
    try:
        said = _Said(Result(head["result"]), str(head["code"]))
        said.check()
        readings = _readings(int(head["shape"]), body, poll.memory) if "shape" in head else None
    except BadAnswer:
        raise
    except Exception as error:  # noqa: BLE001  whatever is wrong with it: it is no answer
        raise BadAnswer(f"an answer that cannot be read ({type(error).__name__})") from None
    text = clean(poll_runner.scrub(str(head.get("message", "")), poll.credential))
    return Outcome(said.result, said.error_code, text, readings)


def _readings(shape_length: int, body: bytes, memory: dict[str, Any]) -> ReadingSet | None:
    if shape_length:
        memory[_SHAPE] = SeriesSet.from_json(body[:shape_length].decode())
    gathered = YieldedReadings(memory)
    gathered.take(ReadingSet(memory[_SHAPE], unpack(body[shape_length:])))
    return gathered.readings()
