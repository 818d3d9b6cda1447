"""The answer to a scrape: a status and a text, as exporters give them."""

from __future__ import annotations

from dataclasses import dataclass

OK = 200
BAD_REQUEST = 400
FORBIDDEN = 403
#: The device gave nothing.
FAILED = 500
#: poller could not ask the device.
UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class ScrapeAnswer:
    """A status and the body of the response."""

    status: int
    body: bytes
    is_own_poll: bool = False  # of a poll that no target has


def failure(status: int, text: str) -> ScrapeAnswer:
    """Return the answer to a scrape that failed: one line that says why."""
    return ScrapeAnswer(status, f"{text}\n".encode())
