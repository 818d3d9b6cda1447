"""Rules are read beside the polls, when the board tells of another version."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from poller import errors
from poller.db.alerts.rule_rows import StoredRules
from poller.domain.alerts.rule import Rule, Threshold
from poller.domain.inventory import target_filter
from poller.workers.alerts.rule_cache import READ_AGAIN_S, RuleCache

HOT = Rule("hot", Threshold("temperature", above=60.0), id=1)
NEEDS_STATE = Rule("odd", HOT.condition, where=target_filter.parse("state:failing"), id=2)


class Reads:
    """Reads that a test ends."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[Future[Any]], None]] = []

    def read_beside(self, query: object, done: Callable[[Future[Any]], None]) -> None:
        self.waiting.append(done)

    def end(self, result: StoredRules | Exception) -> None:
        future: Future[Any] = Future()
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
        self.waiting.pop()(future)


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest.fixture
def cache(reads: Reads) -> RuleCache:
    return RuleCache(None, reads)  # type: ignore[arg-type]


def stored(version: int, *rules: Rule) -> StoredRules:
    return StoredRules(version, rules)


def test_nothing_is_read_before_a_leader_tells_a_version(cache: RuleCache, reads: Reads) -> None:
    assert cache.known(0, 100.0).version == 0
    assert reads.waiting == []


def test_the_old_rules_serve_until_the_new_ones_are_here(cache: RuleCache, reads: Reads) -> None:
    cache.known(3, 100.0)
    reads.end(stored(3, HOT))
    old = cache.known(4, 200.0)
    assert (old.version, len(old.choice)) == (3, 1)
    reads.end(stored(4))
    assert cache.known(4, 201.0).version == 4
    assert reads.waiting == []


def test_one_read_at_a_time(cache: RuleCache, reads: Reads) -> None:
    for now_mono in (100.0, 100.0 + 2 * READ_AGAIN_S):
        cache.known(3, now_mono)
    assert len(reads.waiting) == 1


def test_a_failed_read_is_tried_again_after_a_pause(cache: RuleCache, reads: Reads) -> None:
    cache.known(3, 100.0)
    reads.end(errors.StoreUnavailable("away"))
    cache.known(3, 100.0 + READ_AGAIN_S / 2)
    assert reads.waiting == []
    cache.known(3, 100.0 + READ_AGAIN_S)
    assert len(reads.waiting) == 1


def test_rules_that_are_newer_than_the_board_are_read_once(cache: RuleCache, reads: Reads) -> None:
    """The leader tells a version some time after it is in SQL."""
    cache.known(3, 100.0)
    reads.end(stored(5, HOT))
    cache.known(3, 200.0)
    cache.known(5, 300.0)
    assert reads.waiting == []
    cache.known(6, 400.0)
    assert len(reads.waiting) == 1


def test_a_rule_that_no_poll_can_be_judged_by_is_left_out(cache: RuleCache, reads: Reads) -> None:
    cache.known(3, 100.0)
    reads.end(stored(3, HOT, NEEDS_STATE))
    known = cache.known(3, 101.0)
    assert (len(known.choice), known.choice.unusable) == (1, ["odd"])
