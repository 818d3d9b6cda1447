"""Counts of scrapes by their answers, and the metrics of snmp_exporter about requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from poller.domain.scrapes import scrape_answer
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.metering import process_metrics

SNMP = "/snmp"
LAST_POLL = "last_poll"
_WORDS = {
    scrape_answer.BAD_REQUEST: "refused",
    scrape_answer.FORBIDDEN: "refused",
    scrape_answer.FAILED: "failed",
    scrape_answer.UNAVAILABLE: "unavailable",
}
#: Scrapes by path that wait for their answer, on the event loop of this process.
_in_flight: Counter[str] = Counter()


@contextmanager
def counted(path: str) -> Iterator[Callable[[ScrapeAnswer], None]]:
    """Count a scrape: it is in flight until the context ends, with the answer it is told."""

    def count(answer: ScrapeAnswer) -> None:
        process_metrics.scrapes.add(path, _word(answer))
        if path == SNMP and _word(answer) == "refused":
            process_metrics.snmp_request_errors.add()

    started_mono = time.monotonic()
    _move(path, 1)
    try:
        yield count
    finally:
        _move(path, -1)
        process_metrics.scrape_seconds.observe(time.monotonic() - started_mono, path)


def count_repeated(path: str) -> None:
    """Count a scrape that was answered from memory at once."""
    process_metrics.scrapes.add(path, LAST_POLL)


def _word(answer: ScrapeAnswer) -> str:
    if answer.status == scrape_answer.OK:
        return "poll" if answer.is_own_poll else LAST_POLL
    return _WORDS[answer.status]


def _move(path: str, by: int) -> None:
    _in_flight[path] += by
    if path == SNMP:
        process_metrics.snmp_requests_in_flight.set(_in_flight[path])
