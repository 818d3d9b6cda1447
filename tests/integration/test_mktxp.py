"""mktxp and poller on one simulated router: equal numbers, except for the listed differences."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks import mktxp, same_numbers
from benchmarks.equal import Sample
from benchmarks.same_numbers import DIFFERENCES, Verdict
from poller import errors
from poller.collectors.credentials import Login
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import ReadingSet
from poller.sim import clock, fleet
from poller.sim.sim_process import simulated
from tests.conftest import missing
from tests.unit.collectors.polls import polled

pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector

LOGIN = Login(username=fleet.USERNAME, password=fleet.PASSWORD)
LISTS = ("blocked", "allowed")
NOW = 1_790_000_000.0
PORTS = 40

#: Of RouterOS 7 only.
_BOARDS = "`board` of access points with the package wifi"
_PROCESSES = "`pid` of `routing_stats_processes`"
_USERS = "`active_users_info` of RouterOS 6"


def ours(address: str, port: int, **options: Any) -> ReadingSet:
    drained = asyncio.run(
        polled(RouterOsCollector(), address, LOGIN, timeout_s=30, port=port, tls=False, **options)
    )
    assert drained.outcome.result is Result.OK, drained.outcome.message
    assert drained.outcome.readings is not None
    return drained.outcome.readings


@pytest.fixture(scope="module", params=[7, 6])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, dict[Sample, float], ReadingSet]:
    """The numbers of mktxp and of poller for one router whose clock stands still."""
    if not mktxp.installed():
        missing("mktxp is not installed")
    device = fleet.laboratory(PORTS, version=request.param)
    folder = tmp_path_factory.mktemp(f"mktxp{request.param}")
    with (
        simulated([device], clock=clock.frozen(NOW)) as sim,
        mktxp.running(folder, device.address, sim.routeros, LISTS) as exporter,
    ):
        found = ours(device.address, sim.routeros, families="all", address_lists=LISTS)
        return request.param, exporter.scrape(), found


def test_every_number_of_mktxp_is_ours(both: tuple[int, dict[Sample, float], ReadingSet]) -> None:
    version, theirs, found = both
    verdict = same_numbers.must_be_equal(theirs, found)
    assert verdict.equal > 1500
    expected = {each.what for each in DIFFERENCES} - (
        {_USERS} if version == 7 else {_PROCESSES, _BOARDS}
    )
    assert set(verdict.explained) == expected  # a difference that is gone is not listed any longer


def test_a_number_that_differs_is_seen(both: tuple[int, dict[Sample, float], ReadingSet]) -> None:
    _, theirs, found = both
    some = next(sample for sample in theirs if sample.name == "interface_rx_byte")
    renamed = Sample("interface_rx_byte", frozenset({("name", "ether999")}))
    for changed in ({**theirs, some: theirs[some] + 1}, {**theirs, renamed: 1.0}):
        with pytest.raises(errors.StoreConflict, match="interface_rx_byte"):
            same_numbers.must_be_equal(changed, found)


def test_nothing_at_all_is_no_equality() -> None:
    assert same_numbers.judge({}, ReadingSet.of([])) == Verdict()
    with pytest.raises(errors.StoreConflict):
        same_numbers.must_be_equal({}, ReadingSet.of([]))
