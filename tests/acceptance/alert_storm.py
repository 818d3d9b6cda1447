"""A fleet in trouble, and what real receivers are told of it.

A site goes dark while another one loses the switch that a part of it is reached through. Both come
back, but for one device behind the switch. Everything is a process of its own: beats, workers, the
database, Valkey, simulated devices; an HTTP receiver that fails and hangs, a mail server, and
Alertmanager if it is installed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks import agents
from benchmarks.agents import PollRequest
from poller.db import engine as sql
from poller.db.alerts import alert_rows
from poller.db.alerts.alert_tables import device_parents
from poller.db.tables import devices as device_table
from poller.domain.alerts.alert import AlertState
from poller.service.operations import board_actions
from poller.sim import fleet
from poller.sim.fleet import SimDevice
from poller.sim.sim_process import Running, simulated
from tests.acceptance.cluster import Beat, Cluster, Program, soon
from tests.acceptance.postgres import Postgres
from tests.integration.alert_receivers import Alertmanager, Mailbox, Mood, mail_server, web

NEAR, FAR, BRANCH, BEHIND, STUCK = "near", "far", "branch", "behind", "stuck"
#: Sites of the inventory; the simulator cuts off groups of devices.
SITE = {NEAR: NEAR, FAR: FAR, BRANCH: BRANCH, BEHIND: BRANCH, STUCK: BRANCH}
#: The rules about the network. Those about the platform tell of what the storm kills.
RULES = ["device-unreachable", "site-dark", "target-failing", "no-data"]


@dataclass(frozen=True, slots=True)
class Size:
    """The fleet: `far` devices go dark, `behind` are reached through the switch of the branch."""

    devices: int
    far: int
    behind: int
    interval_s: float
    patience_s: float  # for each step
    kills: Sequence[str] = ()  # leader, worker, web, database
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Told:
    """What the receivers have."""

    mood: Mood
    mailbox: Mailbox
    alertmanager: Alertmanager | None

    def alerts(self, kind: str) -> Counter[str]:
        """How often each alert was told with another key."""
        return Counter(
            f"{alert['rule']} {alert['device'] or alert['site']}"
            for notice in self.mood.taken
            if notice["kind"] == kind
            for alert in notice["alerts"]
        )

    def mails(self) -> int:
        """The mails with different keys."""
        return len({str(each["X-Poller-Key"]) for each in self.mailbox.messages})

    def active(self) -> set[str]:
        """What Alertmanager shows as active."""
        if self.alertmanager is None:
            return set()
        found = json.loads(self.alertmanager.ask("/api/v2/alerts", active="true"))
        labels = [each["labels"] for each in found]
        return {f"{each['alertname']} {each.get('device') or each.get('site')}" for each in labels}


class Storm:
    """One run. The steps wait for what must happen, and fail if it does not."""

    def __init__(self, size: Size, cluster: Cluster, simulator: Running, told: Told) -> None:
        self.told = told
        self._size = size
        self._cluster = cluster
        self._simulator = simulator
        self._web: tuple[int, Program] | None = None
        self.restart_database: Callable[[], None] = lambda: None

    def begins(self) -> None:
        """Cut off the far site, and the switch with all that is behind it."""
        self.told.mood.status = 500
        self._simulator.darken(FAR, BEHIND, STUCK)
        self._until(lambda: len(self.loud()) >= 1, "a first alert")
        self.strike()
        self._until(lambda: self.told.mood.bodies, "a notice that the receiver refuses")
        self.told.mood.status = 200
        self._until(lambda: self.loud() == self.expected, f"the alerts {sorted(self.expected)}")
        self._until(lambda: set(self.told.alerts("firing")) >= self.expected, "their notices")

    def lasts(self) -> None:
        """Let some time go by in which nothing may be told."""
        time.sleep(min(60.0, 3 * self._size.interval_s))

    def ends(self) -> None:
        """Bring all back but for one device, and then that one too."""
        self.told.mood.hangs = True
        self._simulator.darken(STUCK)
        self.strike()
        self.told.mood.hangs = False
        self.told.mood.free.set()
        stuck = {f"device-unreachable {self.stuck}"}
        self._until(lambda: self.loud() == stuck, "the one device that stays dead")
        self._until(lambda: set(self.told.alerts("resolved")) >= self.expected, "two recoveries")
        self._until(lambda: set(self.told.alerts("firing")) >= stuck, "its notice")
        self._simulator.darken()
        self._until(lambda: not self.open(), "no open alert")
        self._until(lambda: set(self.told.alerts("resolved")) >= stuck, "its recovery")
        self._until(lambda: self.told.mails() >= len(self.told.mood.taken), "the mails")

    @property
    def expected(self) -> set[str]:
        """The alerts that people are to be told of while both outages last."""
        return {"site-dark far", f"device-unreachable {self.switch}"}

    @property
    def switch(self) -> str:
        return _named(self._size, BEHIND)[0]

    @property
    def stuck(self) -> str:
        return _named(self._size, STUCK)[0]

    def open(self) -> list[str]:
        """Every open alert of the network."""
        found = alert_rows.open_alerts(self._cluster.services.engine)
        return [
            f"{each.rule} {each.subject.device or each.subject.site}"
            for each in found
            if each.rule in RULES
        ]

    def loud(self) -> set[str]:
        """Alerts that fire and that nothing covers."""
        found = alert_rows.open_alerts(self._cluster.services.engine)
        return {
            f"{each.rule} {each.subject.device or each.subject.site}"
            for each in found
            if each.rule in RULES and each.state is AlertState.FIRING and not each.suppressed_by
        }

    def strike(self) -> None:
        """Kill what is to be killed, and start it again as a supervisor would."""
        kills = self._size.kills
        if "leader" in kills:
            leader: Beat | None = self._cluster.leader()
            if leader is not None:
                leader.kill()
                self._cluster.beats.remove(leader)
                self._cluster.start_beat()
        if "worker" in kills:
            self._cluster.workers.pop(0).kill()
            self._cluster.start_worker()
        if self._web is not None:
            port, running = self._web
            running.kill()
            self.start_web(port)
        if "database" in kills:
            self.restart_database()

    def start_web(self, port: int) -> None:
        """Start the web process, which the storm kills too."""
        self._web = (port, self._cluster.start_web(port))

    def is_sound(self) -> bool:
        """Whether every target is in exactly one place of the board."""
        return bool(board_actions.verify(self._cluster.services).sound)

    def _until(self, condition: Callable[[], Any], what: str) -> None:
        def is_true() -> bool:
            return bool(condition())

        try:
            soon(is_true, self._size.patience_s, what)
        except AssertionError as error:
            state = f"loud {sorted(self.loud())[:9]}, {len(self.open())} open"
            told = f"firing {self.told.alerts('firing')}, resolved {self.told.alerts('resolved')}"
            raise AssertionError(f"{error}; {state}; {told}") from None


@contextlib.contextmanager
def storm(size: Size, directory: Path, database: Postgres | None = None) -> Iterator[Storm]:
    """Start everything, and wait until every device was polled once."""
    simulated_devices = _devices(size)
    with (
        simulated(simulated_devices) as simulator,
        web() as (url, mood),
        mail_server() as (mail_port, mailbox),
        _alertmanager(directory) as alertmanager,
    ):
        told = Told(mood, mailbox, alertmanager)
        settings = {
            "POLLER_RECEIVER": json.dumps(_receivers(url, mail_port, alertmanager)),
            "POLLER_ROUTE": json.dumps(_routes(alertmanager)),
            **size.settings,
        }
        database_url = database.url if database else ""
        with Cluster(directory / "cluster", database_url, **settings) as cluster:
            cluster.valkey.start()
            _store(cluster, simulated_devices, simulator, size)
            for _ in range(2):
                cluster.start_worker()
                cluster.start_beat()
            run = Storm(size, cluster, simulator, told)
            if database is not None:
                run.restart_database = lambda: _restart(database)
            _all_polled(cluster, size)
            yield run


def _restart(database: Postgres) -> None:
    database.kill()
    time.sleep(8.0)
    database.start()


def _all_polled(cluster: Cluster, size: Size) -> None:
    keys, client = cluster.services.keys, cluster.services.redis

    def good() -> bool:
        return int(client.hget(keys.counts, "o") or 0) == size.devices  # type: ignore[arg-type]

    soon(good, size.patience_s + 2 * size.interval_s, "every device answered once")


def _devices(size: Size) -> list[SimDevice]:
    """The near site has what the far site and the branch leave; the branch is two and a half times
    as large as what is behind its switch, so it is never dark.
    """
    made = fleet.devices(size.devices, snmp_share=1, faulty_share=0)
    model = agents.MODEL
    return [replace(each, model=model, variant=0, site=_group(size, each.index)) for each in made]


def _group(size: Size, index: int) -> str:
    edges = (
        (1, STUCK),
        (1 + size.behind, BEHIND),
        (1 + size.behind * 5 // 2, BRANCH),
        (1 + size.behind * 5 // 2 + size.far, FAR),
    )
    return next((group for edge, group in edges if index < edge), NEAR)


def _named(size: Size, group: str) -> list[str]:
    made = fleet.devices(size.devices, snmp_share=1, faulty_share=0)
    return [each.name for each in made if _group(size, each.index) == group]


def _store(cluster: Cluster, devices: Sequence[SimDevice], simulator: Running, size: Size) -> None:
    """Fill the inventory. The first device behind the switch is the switch."""
    limit_s = min(10.0, 0.8 * size.interval_s)
    request = PollRequest(size.interval_s, ("system",), min(1.5, limit_s / 2), 0, limit_s)
    placed = [replace(each, site=SITE[each.site]) for each in devices]
    agents.store(cluster.services, placed, simulator.snmp, request)
    switch, *children = [*_named(size, BEHIND), *_named(size, STUCK)]
    with sql.writing(cluster.services.engine) as conn:
        columns = sa.select(device_table.c.name, device_table.c.id)
        ids = {row.name: row.id for row in conn.execute(columns)}
        rows = [
            {"device_id": ids[child], "parent_id": ids[switch], "source": "hand"}
            for child in children
        ]
        conn.execute(sa.insert(device_parents), rows)


def _receivers(url: str, mail_port: int, alertmanager: Alertmanager | None) -> dict[str, Any]:
    mail = {"sender": "poller@example.net", "to": ["noc@example.net"], "host": "127.0.0.1"}
    found: dict[str, Any] = {
        "hook": {"kind": "webhook", "url": url, "timeout_s": 2.0},
        "mail": {"kind": "email", **mail, "port": mail_port, "security": "plain"},
    }
    if alertmanager is not None:
        found["manager"] = {"kind": "alertmanager", "url": alertmanager.url}
    return found


def _routes(alertmanager: Alertmanager | None) -> dict[str, Any]:
    receivers = ["hook", "mail", *(["manager"] if alertmanager else [])]
    return {"network": {"receivers": receivers, "rules": RULES}}


@contextlib.contextmanager
def _alertmanager(directory: Path) -> Iterator[Alertmanager | None]:
    if shutil.which(Alertmanager.program) is None:
        yield None
        return
    server = Alertmanager(directory / "alertmanager")
    server.start()
    try:
        yield server
    finally:
        server.stop()
