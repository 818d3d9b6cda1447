"""Affinity: each target has one worker until the worker dies, stops or a new one joins."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from poller.collectors.credentials import Login
from poller.db.inventory import credential_rows, imports
from poller.db.tables import devices, runs, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.sim import fleet
from poller.sim.routeros.routeros_server import RouterOsServer
from tests.acceptance.cluster import Cluster, Program, soon

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

pytestmark = pytest.mark.timeout(180)

ROUTERS, INTERVAL_S, TIMEOUT_S, MARGIN_S = 24, 2.0, 1.9, 2.0
TARGETS = 240
#: The share of targets that stay with one worker.
STICKY = 0.95
LEASE_S = TIMEOUT_S + MARGIN_S
NUMBERS = {
    "POLLER_LEASE_MARGIN_S": f"{MARGIN_S:g}",
    "POLLER_SPOOL_PATIENCE_S": f"{MARGIN_S / 10:g}",
}


@contextmanager
def routers(count: int) -> Iterator[tuple[RouterOsServer, int]]:
    """A fleet of routers in a thread of the test, and their port."""
    loop = asyncio.new_event_loop()
    server = RouterOsServer(fleet.devices(count, snmp_share=0, faulty_share=0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server, asyncio.run_coroutine_threadsafe(server.open(0), loop).result(10)
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def add_routers(cluster: Cluster, server: RouterOsServer, port: int) -> None:
    """Add each router with two targets."""
    login = Login(username=fleet.USERNAME, password=fleet.PASSWORD)
    credential_rows.add(
        cluster.services.engine,
        "sim",
        login.kind,
        cluster.services.keyring.seal(login.to_json(), "sim", login.kind),
    )
    times = {"interval_ms": round(INTERVAL_S * 1000), "timeout_ms": round(TIMEOUT_S * 1000)}
    drafts = [
        TargetDraft(family, "routeros", {"port": port, "tls": False, "families": [family]}, **times)
        for family in ("resource", "interfaces")
    ]
    rows = [
        imports.Row(DeviceDraft(address, address, credential="sim"), drafts)
        for address in server.routers
    ]
    imports.apply_import(cluster.services.engine, rows)


def pollers(cluster: Cluster, since: float) -> dict[str, set[str]]:
    """The workers that polled each router since then. Fails if any poll failed."""
    time.sleep(0.1)  # the simulated routers in this process need time to answer
    query = (
        sa.select(
            devices.c.address, runs.c.runner, runs.c.outcome, runs.c.error_code, runs.c.message
        )
        .select_from(runs.join(targets, targets.c.id == runs.c.target_id).join(devices))
        .where(runs.c.started_ms >= since * 1000)
    )
    workers: dict[str, set[str]] = {}
    with cluster.services.engine.connect() as conn:
        for address, runner, outcome, code, message in conn.execute(query):
            assert outcome == "ok" or code == "lease_lost", message
            if code != "lease_lost":
                workers.setdefault(address, set()).add(runner)
    return workers


def assignments(
    cluster: Cluster, server: RouterOsServer, workers: int, within_s: float
) -> dict[str, str]:
    """The worker of each router, after an interval with one worker per router and no login."""

    def stable() -> dict[str, str] | None:
        began = time.time()
        logins = server.logins.copy()
        soon(lambda: time.time() > began + INTERVAL_S, 10, "the interval is over")
        soon(lambda: len(pollers(cluster, began)) == ROUTERS, 40, "each router is polled")

        by_router = pollers(cluster, began)
        one_each = all(len(names) == 1 for names in by_router.values())
        all_names = {name for names in by_router.values() for name in names}
        if not one_each or server.logins != logins or len(all_names) != workers:
            return None
        return {address: names.pop() for address, names in by_router.items()}

    return soon(stable, within_s, f"each router has one of {workers} workers")


def test_routers_stay_with_the_worker_that_holds_their_sessions(tmp_path: Path) -> None:
    """If a worker is killed, only its routers move; if one joins, only its share moves."""
    with routers(ROUTERS) as (server, port), Cluster(tmp_path, **NUMBERS) as cluster:
        cluster.valkey.start()
        add_routers(cluster, server, port)
        cluster.start_beat()
        started = [cluster.start_worker() for _ in range(3)]
        before = assignments(cluster, server, 3, 30)
        print(f"{server.logins.total()} logins of {ROUTERS} routers until no router moved")
        victim = started[0]
        lost = {address for address, name in before.items() if name == victim.name}
        killed = kill(cluster, victim)
        took_s = polled_again(cluster, lost, killed)
        print(f"{len(lost)} routers of a killed worker were polled by others within {took_s:.1f} s")
        assert took_s <= LEASE_S + 2
        after = assignments(cluster, server, 2, 20)
        moved = {address for address, name in after.items() if before[address] != name}
        assert moved == lost
        others = {
            address: names
            for address, names in pollers(cluster, killed).items()
            if address not in lost
        }
        assert others == {a: {worker} for a, worker in before.items() if a not in lost}
        logins = server.logins.copy()
        newcomer = cluster.start_worker()
        joined = assignments(cluster, server, 3, 30)
        taken = {address for address, name in joined.items() if name != after[address]}
        assert {joined[address] for address in taken} == {newcomer.name}
        more = server.logins - logins
        assert set(more) == taken
        assert max(more.values()) == 1, "a router that moved once saw more than one login"
        cluster.checked()


def homes(cluster: Cluster, since: float) -> dict[int, set[int]]:
    """The processes that polled each target since then."""
    by_target: dict[int, set[int]] = {}
    for poll in cluster.record.polls(since):
        by_target.setdefault(poll.target, set()).add(poll.pid)
    return by_target


def settled(cluster: Cluster, within_s: float) -> dict[int, int]:
    """The process of each target, after two intervals in which nearly all have one."""

    def stable() -> dict[int, int] | None:
        began = time.time()
        soon(lambda: time.time() > began + 2 * INTERVAL_S, 10, "two intervals are over")
        by_target = homes(cluster, began)
        single = {each: min(pids) for each, pids in by_target.items() if len(pids) == 1}
        is_complete = len(by_target) == TARGETS and set(single.values()) == {
            worker.pid for worker in cluster.workers
        }
        return single if is_complete and len(single) >= STICKY * TARGETS else None

    return soon(stable, within_s, f"{STICKY:.0%} of the targets stay with one worker")


def test_targets_without_sessions_stay_with_the_worker_that_knows_them(tmp_path: Path) -> None:
    """A killed worker's targets are polled by the other one, no poll is doubled; a new worker takes
    a share, and the other targets stay; a stopped worker holds up only what it had taken.
    """
    with Cluster(tmp_path, **NUMBERS, POLLER_QUEUE_WAIT_S="2") as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, timeout_s=TIMEOUT_S)
        cluster.start_beat()
        victim, survivor = cluster.start_worker(), cluster.start_worker()
        before = settled(cluster, 40)
        shares = Counter(before.values())
        assert min(shares.values()) > TARGETS / 4

        lost = {each for each, pid in before.items() if pid == victim.pid}
        killed = kill(cluster, victim)
        took_s = served_by(cluster, survivor, lost, killed)
        print(f"{len(lost)} targets of a killed worker were polled by the other: {took_s:.1f} s")
        assert took_s <= LEASE_S + INTERVAL_S + 4

        newcomer = cluster.start_worker()
        after = settled(cluster, 40)
        taken = {each for each, pid in after.items() if pid == newcomer.pid}
        assert TARGETS / 4 < len(taken) < 3 * TARGETS / 4

        newcomer.freeze()
        took_s = served_by(cluster, survivor, taken, time.time())
        newcomer.thaw()
        print(f"{len(taken)} targets of a stopped worker were polled by the other: {took_s:.1f} s")
        settled(cluster, 40)
        cluster.never_doubled(0, lambda poll: poll.pid == newcomer.pid)
        cluster.checked()


def served_by(cluster: Cluster, worker: Program, targets: set[int], since: float) -> float:
    """Seconds until a worker has polled all of these targets."""

    def all_polled() -> bool:
        polled = {poll.target for poll in cluster.record.polls(since) if poll.pid == worker.pid}
        return targets <= polled

    soon(all_polled, LEASE_S + INTERVAL_S + 10, "the other worker polls the targets")
    return time.time() - since


def kill(cluster: Cluster, victim: Program) -> float:
    killed = time.time()
    victim.kill()
    cluster.workers.remove(victim)
    return killed


def polled_again(cluster: Cluster, addresses: set[str], since: float) -> float:
    """Seconds until other workers had polled all of these routers."""
    soon(
        lambda: addresses <= pollers(cluster, since).keys(),
        LEASE_S + 10,
        "the routers are polled again",
    )
    return time.time() - since
