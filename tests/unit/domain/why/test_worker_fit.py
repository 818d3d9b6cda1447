"""Which workers may take a target, and why the others may not."""

from __future__ import annotations

from dataclasses import replace

from poller.domain.failures.quarantine import Record
from poller.domain.why import worker_fit
from poller.domain.why.target_facts import TargetFacts
from tests.unit.domain.why.situations import HEALTHY, NOW, in_cluster, worker


def reasons(facts: TargetFacts) -> dict[str, tuple[bool, str]]:
    return {fit.worker: (fit.fits, fit.reason) for fit in worker_fit.workers(facts)}


def test_workers_that_fit_come_first() -> None:
    """A worker without the collector names what it lacks; a lost one says since when."""
    plain = worker("a", collectors={}, queues=())
    lost = replace(worker("b"), seen_ms=NOW - 20_000)
    facts = in_cluster(living=(plain, worker("z")), lost=(lost,))
    assert reasons(facts) == {
        "z": (True, ""),
        "a": (False, "lacks collector snmp"),
        "b": (False, "lost 20 s ago"),
    }
    assert next(iter(reasons(facts))) == "z"


def test_each_obstacle_has_its_words() -> None:
    """A queue not taken up, a quarantine, a store that is away and a broken plugin."""
    quarantined = {"poller 3.9": Record(quarantined_ms=1)}
    living = (
        worker("new", queues=()),
        worker("old", collectors={"snmp": "poller 3.9"}),
        worker("cut", store_error="no route."),
        worker("sick", collectors={}, broken={"snmp": "unloadable"}),
    )
    found = reasons(in_cluster(living=living, crashes=quarantined))
    assert found["new"] == (False, "fits, and has not taken the queue up yet")
    assert found["old"] == (False, "collector snmp is quarantined")
    assert found["cut"] == (False, "reports no route")
    assert found["sick"][1].startswith("collector snmp cannot be loaded: unloadable")


def test_a_busy_worker_may_take_it_later() -> None:
    """The load and a rate limit are remarks, no obstacles."""
    busy = worker("busy", in_flight=16, rate_limit="1/m")
    found = reasons(in_cluster(living=(busy,)))
    assert found["busy"] == (True, "busy: 16 of 16 worker slots; starts at most 1/m batches")


def test_the_holder_of_a_session_is_named() -> None:
    """Of two workers that keep sessions, exactly one keeps those of the device."""
    living = (worker("a", sessions=("snmp",)), worker("b", sessions=("snmp",)))
    found = reasons(in_cluster(living=living))
    remarks = sorted(reason for _, reason in found.values())
    assert remarks == ["", "keeps the sessions of the device"]
    assert worker_fit.home(HEALTHY) == ("", False)


def test_the_worker_that_knows_the_target_is_named() -> None:
    """Of two workers with queues of their own, exactly one usually polls the target."""
    living = (worker("a", own_queues=True), worker("b", own_queues=True))
    found = reasons(in_cluster(living=living))
    remarks = sorted(reason for _, reason in found.values())
    assert remarks == ["", "polls it unless busy"]
