"""What became of one attempted poll. A value, never an exception: one device's failure is data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller import errors
from poller.domain.failures import error_codes
from poller.domain.metrics.reading import ReadingSet

MESSAGE_LIMIT = 512


class Result(enum.StrEnum):
    OK = "ok"
    PARTIAL = "partial"  # some parts failed, the readings of the others are kept
    FAILED = "failed"
    REFUSED = "refused"  # not attempted: e.g. its collector is not installed here
    DUPLICATE = "duplicate"  # this very attempt was started already, by somebody
    STALE = "stale"  # another run of the target is in flight by now
    GONE = "gone"  # the target was removed meanwhile


@dataclass(frozen=True, slots=True)
class Outcome:
    result: Result
    error_code: str = ""
    message: str = ""
    readings: ReadingSet | None = None

    @property
    def good(self) -> bool:
        return self.result in (Result.OK, Result.PARTIAL)

    @property
    def retryable(self) -> bool:
        """The failure policy allows a retry before the next slot."""
        return self.error_code in error_codes.RETRIED

    @property
    def samples(self) -> int:
        return len(self.readings.values) if self.readings else 0


def from_error(error: errors.DeviceError, readings: ReadingSet | None = None) -> Outcome:
    """A device error as an outcome: partial when something was read before it struck."""
    is_finding = error.error_code in error_codes.FINDINGS
    result = Result.PARTIAL if readings and not is_finding else Result.FAILED
    return Outcome(result, error.error_code, clean(str(error)), readings)


def clean(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Printable, single-line and bounded: device and plugin texts can contain anything."""
    line = "".join(c if c.isprintable() else " " for c in text.strip())
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
