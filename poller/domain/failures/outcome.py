"""The outcome of one poll attempt: a value, because the failure of a device is data."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from poller import errors
from poller.domain.failures import error_codes
from poller.domain.metrics.reading import ReadingSet

MESSAGE_LIMIT = 512


class Result(enum.StrEnum):
    OK = "ok"
    PARTIAL = "partial"  # some parts failed, the readings of the others are stored
    FAILED = "failed"
    REFUSED = "refused"  # not attempted: the collector, the options or the credential is unusable
    DUPLICATE = "duplicate"  # another worker already started this attempt
    STALE = "stale"  # another run of the target is in flight by now
    GONE = "gone"  # the target was removed meanwhile


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a poll.

    `error_code` is a code of `error_codes.TABLE`, empty when all went well.
    """

    result: Result
    error_code: str = ""
    message: str = ""
    readings: ReadingSet | None = None
    #: When the last of the readings arrived, by the clock of the event loop; 0 is unknown.
    answered_mono: float = field(default=0.0, compare=False)

    @property
    def good(self) -> bool:
        """Whether the target responded, with all or some of its readings."""
        return self.result in (Result.OK, Result.PARTIAL)

    @property
    def retryable(self) -> bool:
        """Whether the failure policy allows a retry before the next slot."""
        return self.error_code in error_codes.RETRIED

    @property
    def samples(self) -> int:
        """The number of readings."""
        if self.readings is None:
            return 0
        return len(self.readings.values)


def from_error(error: errors.DeviceError, readings: ReadingSet | None = None) -> Outcome:
    """Return the outcome of a device error: partial when it has readings."""
    is_finding = error.error_code in error_codes.FINDINGS
    is_partial = readings is not None and not is_finding
    result = Result.PARTIAL if is_partial else Result.FAILED
    message = clean(str(error))
    return Outcome(result, error.error_code, message, readings)


def error_of(code: str, message: str) -> errors.DeviceError:
    """Return the device error of a code, such as that of a poll elsewhere."""
    kinds = {each.error_code: each for each in errors.DeviceError.__subclasses__()}
    return kinds.get(code, errors.DeviceError)(message)


def clean(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return a printable, single-line text of bounded length: devices and plugins send anything."""
    printable = "".join(c if c.isprintable() else " " for c in text.strip())
    line = " ".join(printable.split())
    if len(line) <= limit:
        return line
    return line[: limit - 1] + "…"
