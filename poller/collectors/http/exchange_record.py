"""What is known of an exchange so far, with the time each step took. Stays true when the exchange ends in an error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from poller.collectors.http.http_tls import Certificate


@dataclass(slots=True)
class Seen:
    doing: str = "resolving its name"
    phases: dict[str, float] = field(default_factory=dict)  # seconds
    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    truncated: bool = False  # there was more of the body than we wanted
    complete: bool = False  # up to there, at least
    location: str = ""
    encoding: str = ""
    certificate: Certificate | None = None
    trusted: bool = False  # we checked it, and it was good
    protocol: str = ""  # of TLS

    @contextlib.contextmanager
    def phase(self, name: str, doing: str) -> Iterator[None]:
        """Times a step, also one that fails."""
        self.doing = doing
        began = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = time.perf_counter() - began
