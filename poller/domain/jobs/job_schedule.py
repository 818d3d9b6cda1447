"""The schedule of a job: a fixed cadence on the UTC grid, or five-field cron in a time zone.

A plan is an instant of the schedule, in UTC milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from poller.domain.inventory import duration
from poller.domain.jobs import wall_clock


@dataclass(frozen=True, slots=True)
class Cadence:
    """A plan at every multiple of the interval since 1970, in UTC."""

    every_ms: int

    def latest_ms(self, now_ms: int) -> int:
        """The newest plan that is not after `now_ms`."""
        return now_ms - now_ms % self.every_ms

    def next_ms(self, after_ms: int) -> int:
        """The first plan after `after_ms`."""
        return self.latest_ms(after_ms) + self.every_ms

    def plans(self, after_ms: int, until_ms: int, limit: int) -> list[int]:
        """The first plans after `after_ms` that are not after `until_ms`, oldest first."""
        first_ms = self.next_ms(after_ms)
        return list(islice(range(first_ms, until_ms + 1, self.every_ms), limit))

    @property
    def text(self) -> str:
        """The schedule as people write it: `every 5 m`."""
        return f"every {duration.rounded_text(self.every_ms)}"

    def to_json(self) -> dict[str, Any]:
        """The schedule as a JSON object."""
        return {"every_ms": self.every_ms}


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields of cron in a time zone.

    An expression that names hours follows the clock on the wall: a plan in the hour that the clock
    skips comes right after that hour, and one in the hour that comes twice comes the first time.
    An expression of every hour follows real time: its plans come in both of the two hours.
    """

    expression: str
    timezone: str = "UTC"

    def latest_ms(self, now_ms: int) -> int:
        """The newest plan that is not after `now_ms`."""
        return wall_clock.latest_ms(self.expression, self.timezone, now_ms)

    def next_ms(self, after_ms: int) -> int:
        """The first plan after `after_ms`."""
        return next(wall_clock.instants(self.expression, self.timezone, after_ms))

    def plans(self, after_ms: int, until_ms: int, limit: int) -> list[int]:
        """The first plans after `after_ms` that are not after `until_ms`, oldest first."""
        instants = wall_clock.instants(self.expression, self.timezone, after_ms)
        return list(islice(takewhile(lambda plan_ms: plan_ms <= until_ms, instants), limit))

    @property
    def text(self) -> str:
        """The schedule as people write it: `0 2 * * * Europe/Amsterdam`."""
        return f"{self.expression} {self.timezone}"

    def to_json(self) -> dict[str, Any]:
        """The schedule as a JSON object."""
        return {"cron": self.expression, "timezone": self.timezone}


Schedule = Cadence | Cron


def from_json(value: dict[str, Any]) -> Schedule:
    """The schedule of `to_json`. Raises KeyError, TypeError, ValueError."""
    if "every_ms" in value:
        return Cadence(int(value["every_ms"]))
    return Cron(str(value["cron"]), str(value["timezone"]))
