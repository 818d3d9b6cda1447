"""The server's clock is set by an hour while a fleet is polled: no burst, stall or lost poll."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.domain.why.causes import Cause
from poller.service import target_explanation
from tests.acceptance import records
from tests.acceptance.cluster import Cluster, soon
from tests.conftest import missing

pytestmark = pytest.mark.alone

TARGETS, INTERVAL_S = 360, 6.0
LIBRARIES = (Path("/usr/lib"), Path("/usr/lib64"))


class Clock:
    """The clock of Valkey, as an offset in a file that libfaketime reads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, hours: int) -> None:
        complete = self._file.with_suffix(".new")
        complete.write_text(f"{hours * 3600:+d}\n")
        complete.rename(self._file)


def _library() -> Path:
    for folder in LIBRARIES:
        for library in folder.glob("**/faketime/libfaketime.so.1"):
            return library
    return missing("libfaketime is not installed (Debian package faketime)")


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock") / "offset")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(clock._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }.items():
            patch.setenv(name, value)
        made.valkey.start()
        patch.undo()
        made.add_targets(TARGETS, INTERVAL_S, seconds=0.05)
        made.start_beat()
        made.start_beat()
        made.start_worker()
        made.all_polled(0.0, 30)
        yield made


def _is_future_told(cluster: Cluster) -> bool:
    """Whether `why` tells a target whose last poll is in the future since the step."""
    explained = [
        target_explanation.explain_device(cluster.services, f"d{number}") for number in range(10)
    ]
    return any(each.cause is Cause.CLOCK_SET_BACK for [each] in explained)


@pytest.mark.parametrize(
    "hours", [1, -1, 0], ids=["an hour ahead", "two hours back", "an hour ahead again"]
)
def test_a_step_of_the_clock_neither_bursts_nor_stalls(
    cluster: Cluster, clock: Clock, hours: int
) -> None:
    """All targets are polled within two intervals and a failover; no second has a burst."""
    pids = cluster.pids()
    soon(lambda: cluster.leader(), 10, "a leader")
    cluster.all_polled(time.time(), 2 * INTERVAL_S)  # a whole interval before the step
    before = time.time()
    clock.set(hours)
    soon(
        lambda: abs(cluster.services.board.now_ms() / 1000 - time.time() - hours * 3600) < 5,
        5,
        "the clock is set",
    )
    if hours < 0:
        soon(lambda: _is_future_told(cluster), 5, "`why` says that the clock was set back")
    cluster.all_polled(before, 2 * INTERVAL_S + 5)
    stepped = time.time()
    cluster.all_polled(stepped, 2 * INTERVAL_S)
    polls = [poll.start for poll in cluster.record.polls(before)]
    usual = TARGETS / INTERVAL_S
    busiest = max(sum(at <= other < at + 1 for other in polls) for at in polls[::10])
    # A busy machine catches up for a moment; the fleet is not polled at once.
    assert busiest < 4.5 * usual < TARGETS
    assert records.overlapping(cluster.record.polls(before)) == []
    cluster.sound()
    assert cluster.pids() == pids
