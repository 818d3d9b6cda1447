"""Plugins that hang, yield rubbish, raise odd exceptions or end the process harm only their own
targets. The plugin is installed as pip would, and the same workers poll its targets and all others.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from poller.db.inventory import imports
from poller.db.tables import devices, runs, targets
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Event, Kind
from poller.state.cluster import event_stream as stream
from tests.acceptance import troublemaker
from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.troublemaker import RAISED, RUBBISH

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]

TIMEOUT_S = 0.9
OTHERS = [f"d{number}" for number in range(60)]
#: Targets of the collector that kills, and so in the same batches.
MATES = [f"answer-{number}" for number in range(10)]
#: Targets in threads: some hang, and other targets of the same collector go on.
HANGING = [f"block-{number}" for number in range(4)]
PLODDING = [f"answer-p{number}" for number in range(5)]
SMALL = [*RUBBISH, *RAISED, "nan", "never_end", "wait_for_ever", "answer"]
OK = (Result.OK, "")
CRASHED = (Result.FAILED, error_codes.COLLECTOR_CRASHED)


def add(cluster: Cluster, deeds: Mapping[str, str], collector: str = troublemaker.NAME) -> None:
    """Add a device for each deed, named after the deed (up to a dash), with `text` as its
    option.
    """
    rows = []
    for do, text in deeds.items():
        options = {"do": do.partition("-")[0], "text": text}
        draft = TargetDraft("t", collector, options, interval_ms=1000, timeout_ms=900)
        rows.append(imports.Row(DeviceDraft(do, "127.0.0.1"), [draft]))
    imports.apply_import(cluster.services.engine, rows)
    if cluster.beats:
        cluster.services.board.wake("inventory")


def ledger(cluster: Cluster, since: float = 0.0) -> defaultdict[str, list[Any]]:
    """Return the rows of each device that were planned after an instant, by plan."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    query = (
        sa.select(devices.c.name, runs)
        .join(targets, targets.c.id == runs.c.target_id)
        .join(devices, devices.c.id == targets.c.device_id)
        .where(runs.c.plan_ms >= since * 1000)
        .order_by(runs.c.plan_ms)
    )
    with cluster.services.engine.connect() as conn:
        for row in conn.execute(query):
            found[row.name].append(row)
    return found


@dataclass(frozen=True)
class Lively:
    """The small deeds ran from `began` on, the large one from `flooded` on."""

    cluster: Cluster
    began: float
    flooded: float
    ended: float

    def lateness_ms(self, since: float, until: float) -> list[int]:
        """Return the lateness of every other target's polls in the period, in order."""
        found = ledger(self.cluster, since)
        rows = [row for name in OTHERS for row in found[name] if row.plan_ms < until * 1000]
        assert {(row.outcome, row.error_code) for row in rows} == {(Result.OK, "")}
        assert len({row.target_id for row in rows}) == len(OTHERS)
        late = sorted(row.started_ms - row.plan_ms for row in rows)
        half, most = late[len(late) // 2], late[-len(late) // 100]
        print(
            f"{len(late)} polls of others: late by {half} ms, p99 {most} ms, at most {late[-1]} ms"
        )
        return late


@pytest.fixture(scope="module")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lively]:
    """One worker that polls, for a while, targets that break the rules of collectors without
    killing.
    """
    with Cluster(tmp_path_factory.mktemp("lively"), POLLER_RETRY_TRIES="0") as cluster:
        troublemaker.install(cluster.directory / "plugins")
        cluster.valkey.start()
        cluster.add_targets(len(OTHERS), 1.0)
        cluster.start_beat()
        cluster.start_worker()
        cluster.all_polled(0, 30)
        began = time.time()
        add(cluster, dict.fromkeys(SMALL, ""))
        add(cluster, dict.fromkeys([*HANGING, *PLODDING], ""), troublemaker.PLODDER)
        soon(
            lambda: min(len(ledger(cluster).get(deed, ())) for deed in SMALL) >= 3,
            40,
            "every deed was done thrice",
        )
        flooded = time.time()
        add(cluster, {"millions": ""})
        soon(
            lambda: len(ledger(cluster).get("millions", ())) >= 3, 60, "the flood was polled thrice"
        )
        yield Lively(cluster, began, flooded, time.time())


@pytest.mark.parametrize(
    ("deed", "expected"),
    [
        *((deed, CRASHED) for deed in [*RUBBISH, *RAISED]),
        ("never_end", CRASHED),
        ("wait_for_ever", (Result.FAILED, error_codes.TIMEOUT)),
        ("nan", OK),
        ("answer", OK),
    ],
)
def test_each_deed_has_an_outcome_of_its_own(
    lively: Lively, deed: str, expected: tuple[Result, str]
) -> None:
    """A deed has the same outcome in every poll, and only for its own target."""
    assert {(row.outcome, row.error_code) for row in ledger(lively.cluster)[deed]} == {expected}


@pytest.mark.parametrize("name", HANGING)
def test_a_poll_that_hangs_in_a_thread_has_its_outcome_in_time(lively: Lively, name: str) -> None:
    """A poll ends at its deadline, even if its thread hangs."""
    rows = ledger(lively.cluster)[name]
    assert {(row.outcome, row.error_code) for row in rows} == {(Result.FAILED, error_codes.TIMEOUT)}
    assert max(row.collect_ms for row in rows) <= TIMEOUT_S * 1000 + 500


def test_other_targets_of_a_hanging_collector_still_get_threads(lively: Lively) -> None:
    """Stuck threads are replaced up to a limit; then the collector goes on in its own process."""
    found = ledger(lively.cluster)
    assert {row.outcome for name in PLODDING for row in found[name]} == {Result.OK}
    assert min(len(found[name]) for name in PLODDING) >= (lively.ended - lively.began) / 2
    services = lively.cluster.services
    events = stream.newest(services.redis, services.keys, 1_000)
    isolated = [
        each.event for each in events if each.event and each.event.kind is Kind.COLLECTOR_ISOLATED
    ]
    assert [event.data["collector"] for event in isolated] == [troublemaker.PLODDER]
    assert "of its threads hang in one worker" in isolated[0].message


def test_millions_of_readings_end_at_the_deadline_or_the_limit(lively: Lively) -> None:
    """A flood of readings is partial at the deadline or a crash at the limit."""
    codes = {(row.outcome, row.error_code) for row in ledger(lively.cluster)["millions"]}
    assert codes <= {
        (Result.PARTIAL, error_codes.TIMEOUT),
        (Result.FAILED, error_codes.COLLECTOR_CRASHED),
    }


def test_the_other_polls_of_the_worker_stay_on_time(lively: Lively) -> None:
    """Each poll starts within a second of its slot, half of it the leader's tick; the only process
    lives on.
    """
    assert lively.lateness_ms(lively.began, lively.flooded)[-1] <= 1_000
    assert lively.cluster.workers[0].runs


def test_a_flood_of_readings_delays_no_other_poll(lively: Lively) -> None:
    """A flood is neither assembled on the shared loop nor written."""
    assert lively.lateness_ms(lively.flooded, lively.ended)[-1] <= 1_000
    assert lively.cluster.workers[0].runs


@dataclass(frozen=True)
class Deadly:
    """A cluster under `poller up` with one worker, in which one target of the plugin kills from
    `struck` on.
    """

    cluster: Cluster
    up: Program
    deed: str
    lease_s: float
    struck: float

    def events(self, kind: Kind) -> list[Event]:
        services = self.cluster.services
        found = stream.newest(services.redis, services.keys, 1_000)
        return [entry.event for entry in found if entry.event and entry.event.kind is kind]

    def deaths(self) -> list[Event]:
        """Losses that name the plugin; the leader may have noticed the loss itself before."""
        found = [*self.events(Kind.WORKER_LOST), *self.events(Kind.WORKER_DEATH_EXPLAINED)]
        return [event for event in found if event.data.get("collector") == troublemaker.NAME]

    def all_good_since(self, instant: float) -> bool:
        rows = ledger(self.cluster, instant)
        return all(
            any(row.outcome == Result.OK for row in rows[name]) for name in [*OTHERS, *MATES]
        )

    def longest_pause_s(self, name: str) -> float:
        """Return the longest time between two good polls of a device, from the last one before the
        strike.
        """
        good = [
            row.finished_ms / 1000 for row in ledger(self.cluster)[name] if row.outcome == Result.OK
        ]
        assert good, name
        return max(b - a for a, b in pairwise([*good, time.time()]) if b >= self.struck)


@contextmanager
def striking(
    directory: Path,
    deed: str,
    margin_s: float,
    base_s: float,
    env: Mapping[str, str] | None = None,
    **limits: int,
) -> Iterator[Deadly]:
    """Start a cluster that polls all targets well until one target of the plugin begins its
    deed.
    """
    leases = {
        "LEASE_MARGIN_S": margin_s,
        "SPOOL_PATIENCE_S": min(1.0, margin_s / 10),
        "QUEUE_WAIT_S": 1,
    }
    names = {**leases, "BREAKER_BASE_S": base_s}
    settings = {f"POLLER_{name}": f"{value:g}" for name, value in names.items()} | dict(env or {})
    with Cluster(directory, **settings) as cluster:
        troublemaker.install(directory / "plugins")
        cluster.valkey.start()
        cluster.add_targets(len(OTHERS), 1.0)
        gate = directory / "gate"
        add(cluster, {**dict.fromkeys(MATES, ""), deed: str(gate)})
        up = cluster.start_up(**limits)
        all_devices = {*OTHERS, *MATES, deed}
        soon(lambda: ledger(cluster).keys() == all_devices, 60, "every target is polled")
        soon(
            lambda: all(ledger(cluster, time.time() - 2)[name] for name in all_devices),
            20,
            "every target is polled again",
        )
        gate.touch()
        yield Deadly(cluster, up, deed, margin_s + TIMEOUT_S, time.time())


@pytest.mark.parametrize(
    ("deed", "margin_s", "base_s", "deaths"),
    [("exit", 4, 6, 2), ("kill", 4, 6, 2), ("block", 15, 30, 1), ("spin", 15, 30, 1)],
)
def test_a_plugin_that_ends_its_worker_is_named_and_the_others_are_polled_within_the_lease(
    tmp_path: Path, deed: str, margin_s: float, base_s: float, deaths: int
) -> None:
    """Targets of the same batch are polled too, also after a second death at the probe; the
    supervisor restarts the worker.
    """
    with striking(tmp_path, deed, margin_s, base_s) as deadly:
        soon(lambda: len(deadly.deaths()) >= deaths, 60, f"the plugin was named {deaths} times")
        last = time.time()
        soon(
            lambda: deadly.all_good_since(last), deadly.lease_s + 4, "every other target is polled"
        )
        pause = max(deadly.longest_pause_s(name) for name in [*OTHERS, *MATES])
        print(
            f"{deed}: longest pause of another target {pause:.1f} s, lease {deadly.lease_s:.1f} s"
        )
        assert pause <= 1.0 + deadly.lease_s + 2.0
        event = deadly.deaths()[0]
        assert (event.device, event.target) == (deed, "t")
        assert "collector troublemaker (poller-troublemaker 1.0)" in event.message
        rows = ledger(deadly.cluster, deadly.struck - 1)
        assert {row.error_code for name in [*OTHERS, *MATES] for row in rows[name]} <= {
            "",
            error_codes.LEASE_LOST,
        }
        said = [row.message for row in rows[deed] if row.error_code == error_codes.WORKER_DIED]
        assert len(said) == len(deadly.deaths())
        assert "poller-troublemaker 1.0" in said[0]
        assert deed in {event.device for event in deadly.events(Kind.BREAKER_OPENED)}
        deadly.cluster.checked()


def test_a_plugin_that_allocates_without_end_is_cut_off_by_the_limit_of_its_process(
    tmp_path: Path,
) -> None:
    """Under `ulimit -v` the plugin gets its own error, and the worker lives on."""
    with striking(tmp_path, "allocate", 15, 30, memory_bytes=2 * 2**30) as deadly:
        soon(
            lambda: len(ledger(deadly.cluster, deadly.struck)["allocate"]) >= 2,
            30,
            "it was polled twice",
        )
        found = {
            (row.outcome, row.error_code)
            for row in ledger(deadly.cluster, deadly.struck)["allocate"]
        }
        assert found == {CRASHED}
        assert deadly.deaths() == []
        assert max(deadly.longest_pause_s(name) for name in [*OTHERS, *MATES]) <= 4.0
