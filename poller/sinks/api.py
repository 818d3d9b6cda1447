"""The sink contract: a sink stores the readings of many polls at once, or raises StoreError."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, Protocol, runtime_checkable

from poller.domain.inventory.api_version import Served, Stated
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet, SeriesSet

API_VERSION = 1

#: Contract versions of this release. The promise is that of `poller.collectors.api.SERVED`.
SERVED: Mapping[int, Served] = {1: Served()}

#: Polls of one call of `write`, for a sink that states no `write_polls`.
WRITE_POLLS = 1024


def ignore_drops(samples: int, reason: str) -> None:
    """Count nothing: the `dropped` of stores that no worker made."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The readings of one poll; with `is_end` the series that end at `at_ms`.

    A series ends when a poll no longer has it, or when its target fails, is disabled, removed or
    renamed. The values of an end are NaN and mean nothing. Only sinks with `takes_ends` get ends,
    in order with the other samples of a worker.
    """

    target: PollTarget
    at_ms: int  # when the last answer of the poll arrived, by the clock of Redis
    readings: ReadingSet
    is_end: bool = False

    @classmethod
    def end_of(cls, target: PollTarget, at_ms: int, series: SeriesSet) -> Sample:
        """Return the end of these series of a target."""
        no_values = array("d", [nan]) * len(series)
        return cls(target, at_ms, ReadingSet(series, no_values), is_end=True)


@dataclass(frozen=True, slots=True)
class Stores:
    """The platform's SQL engine, Redis client and settings, for a sink to use.

    `dropped(samples, reason)` counts single samples that the sink leaves out for good; the reason
    names the first series of them.
    """

    engine: Any
    redis: Any
    settings: Any
    name: str = ""  # of this sink in the settings: two sinks of one kind have two names
    dropped: Callable[[int, str], None] = ignore_drops


@runtime_checkable
class Sink(Protocol):
    """A sink is made once per worker process with `Sink(stores)`. One thread calls `write`.

    Optional attributes of the class:

    Options: a pydantic model with extra="forbid". The sink is then made with
        `Sink(stores, options)`; the options are those of its table in poller.toml.
    write_polls: the polls of one call of `write` when many wait, 1024 if not stated. A round (the
        polls of a batch that end together) is not divided, so that a call may have a few more.
    takes_ends: True for a sink that wants samples with `is_end`.
    target_labels: a method for a sink that takes ends. It gets a target and returns what the store
        has of it in every series, as a hashable value; when that changes, the old series end.
        Without it every change of name, device, address, site or tags counts. Many threads call it.
    check: a method without arguments; its text says what the store answers (`poller sinks test`).
    """

    name: ClassVar[str]

    @property
    def api_version(self) -> Stated:
        """The contract version, `1`, or the first and last one, `(1, 2)`. A class attribute will
        do.
        """
        ...

    def write(self, samples: Sequence[Sample]) -> None:
        """Store all samples, or raise StoreError and store none that a repetition would double.

        After StoreUnavailable (the store is away) the same samples come again before any later
        ones; `retry_after_s` of the error says when. After any other error (the store refuses these
        samples) they come again a few times and are then set aside. A call that takes longer than a
        second counts as away, but may still succeed. Samples may be hours old after an outage.
        """
        ...

    def close(self) -> None: ...
