"""The record of one destination's deliveries: what it took, and the last thing that went wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass

from poller import errors, plugins
from poller.domain.failures import outcome

#: A refusal is shown this long.
REFUSAL_SHOWN_S = 300.0
#: A call of `write` that lasts longer counts as an outage.
LONGEST_CALL_S = 10.0


@dataclass(slots=True)
class DeliveryRecord:
    """Written by the thread of the writer, read by any. Instants are of the monotonic clock."""

    polls: int = 0
    samples: int = 0
    written_mono: float = 0.0  # of the last poll that was taken
    error: str = ""  # the last one
    hint: str = ""
    error_mono: float = 0.0
    failures: int = 0  # in a row
    retry_mono: float = 0.0
    _called_mono: float | None = None  # since then a call of `write` runs
    _refused_mono: float = -REFUSAL_SHOWN_S

    def call_began(self) -> None:
        self._called_mono = time.monotonic()

    def call_ended(self) -> None:
        self._called_mono = None

    def written(self, polls: int, samples: int) -> None:
        self.polls += polls
        self.samples += samples
        self.written_mono = time.monotonic()
        self.failures = 0

    def failed(self, error: BaseException) -> str:
        """Record an error, and return its text."""
        if isinstance(error, errors.PollerError):
            self.error = outcome.clean(str(error))
            self.hint = outcome.clean(error.hint)
        else:
            self.error = outcome.clean(plugins.error_text(error))
            self.hint = ""
        self.error_mono = time.monotonic()
        if is_refusal(error):
            self.refused()
        else:
            self.failures += 1
        return self.error

    def refused(self) -> None:
        """The store, or the sink itself, refused samples."""
        self._refused_mono = time.monotonic()

    @property
    def call_s(self) -> float:
        """The seconds that the present call of `write` lasts; 0 without one."""
        called_mono = self._called_mono
        return time.monotonic() - called_mono if called_mono is not None else 0.0

    @property
    def is_down(self) -> bool:
        return self.failures > 0 or self.call_s > LONGEST_CALL_S

    @property
    def is_refused(self) -> bool:
        return time.monotonic() < self._refused_mono + REFUSAL_SHOWN_S


def is_refusal(error: BaseException) -> bool:
    """Whether the store answers and will never take these rows.

    A mistake in the settings is none: the rows are good, and wait until it is corrected.
    """
    return not isinstance(error, errors.StoreUnavailable | errors.ConfigError)
