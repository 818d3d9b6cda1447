"""A batch returns its results in rounds: a round ends when no new result arrives for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Credential, Login, Token
from poller.collectors.registry import Registry
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.workers.batch.collection import Collection
from poller.workers.batch.event_loop import PollLoop
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.guard.black_box import BlackBox


class SlowOptions(api.Options):
    takes_s: float


class Slow:
    name: ClassVar[str] = "slow"
    api_version: ClassVar[int] = api.API_VERSION
    Options = SlowOptions
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        await asyncio.sleep(poll.options.takes_s)
        yield api.Reading("answered", 1.0)


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[PollLoop]:
    box = BlackBox(tmp_path, "test")
    yield PollLoop(box)
    box.close()


def rounds(runtime: PollLoop, *takes_s: float) -> list[tuple[float, list[int]]]:
    """Return the time of each round and the targets in it, numbered from 0."""
    known = [
        CachedTarget(
            PollTarget(at, 1, "t", 1, "d", "127.0.0.1", "", "slow", 60_000, 5_000),
            1,
            SlowOptions(takes_s=each),
        )
        for at, each in enumerate(takes_s)
    ]
    batch = Collection(runtime, Registry({"slow": Slow()}), 1)
    began = time.monotonic()
    batch.start(known, {})
    found = []
    for done in batch.rounds():
        found.append((time.monotonic() - began, sorted(item.id for item in done)))
    return found


def test_one_round_when_all_answer(runtime: PollLoop) -> None:
    """64 targets that answer together make one round."""
    ((_, ids),) = rounds(runtime, *[0.05] * 64)
    assert ids == list(range(64))


def test_fast_targets_do_not_wait_for_a_silent_one(runtime: PollLoop) -> None:
    """The round of fast targets ends within a second, before the time-out of the silent target."""
    first, last = rounds(runtime, *[0.02] * 63, 1.5)
    assert first[1] == list(range(63))
    assert first[0] < 0.5
    assert last[1] == [63]


def test_a_batch_of_silent_devices_has_one_empty_round(runtime: PollLoop) -> None:
    """After the empty round its capacity can be lent; the next round waits for all."""
    first, last = rounds(runtime, *[1.8] * 8)
    assert first[1] == []
    assert last[1] == list(range(8))


def test_answers_that_come_one_after_another_make_a_few_rounds(runtime: PollLoop) -> None:
    """One round for each result would cost more than the polls."""
    found = rounds(runtime, *(0.05 * number for number in range(60)))
    assert sum(len(ids) for _, ids in found) == 60
    assert len(found) <= 12


def test_a_busy_loop_is_not_taken_for_silence(runtime: PollLoop) -> None:
    """Results that arrive while other work blocks the loop are in the same round."""
    runtime.loop.call_soon_threadsafe(lambda: runtime.loop.call_later(0.01, time.sleep, 0.4))
    found = rounds(runtime, *[0.005] * 32, *[0.1] * 32)
    assert [len(ids) for _, ids in found] == [64]


class Keyed(Slow):
    """A collector that needs a credential, unless its options name another source."""

    name: ClassVar[str] = "keyed"
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Token,)

    def brings_credential(self, options: SlowOptions) -> bool:
        return options.takes_s > 0

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        assert poll.credential is None
        yield api.Reading("answered", 1.0)


def test_options_can_make_a_credential_unnecessary(runtime: PollLoop) -> None:
    """Such a target is polled without a credential; any other is refused."""
    target = PollTarget(1, 1, "t", 1, "d", "127.0.0.1", "", "keyed", 60_000, 5_000)
    results = []
    for takes_s in (0.1, 0):
        batch = Collection(runtime, Registry({"keyed": Keyed()}), 1)
        batch.start([CachedTarget(target, 1, SlowOptions(takes_s=takes_s))], {})
        results += [item.outcome.result for item in next(batch.rounds(), [])]
    assert results == [Result.OK, Result.REFUSED]


@pytest.mark.parametrize(
    "opened", [Login.from_text("admin:hunter22"), errors.NotFound("it was removed")]
)
def test_a_credential_of_another_kind_is_neither_passed_on_nor_required(
    runtime: PollLoop, opened: Credential | errors.PollerError
) -> None:
    """The device's credential may be for another collector, or may not be readable."""
    target = PollTarget(1, 1, "t", 1, "d", "127.0.0.1", "", "keyed", 60_000, 5_000, credential_id=7)
    results = []
    for takes_s in (0.1, 0):
        batch = Collection(runtime, Registry({"keyed": Keyed()}), 1)
        batch.start([CachedTarget(target, 1, SlowOptions(takes_s=takes_s))], {7: opened})
        results += [item.outcome.result for item in next(batch.rounds(), [])]
    assert results == [Result.OK, Result.REFUSED]
