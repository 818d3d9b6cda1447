"""A device with a day of history, a ledger of runs and a place on the board, for its pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.record.overview import State, Worker
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.state.board.board_values import ClaimLimits, Move, Place
from poller.state.cluster import worker_registry
from poller.state.cluster.leader_lock import Leadership

MINUTE = 60_000
QUEUE = "poll.snmp"
LIMITS = ClaimLimits(targets=1_000, batch_size=64, lease_ms=30_000)
#: Minutes before now without polls.
GAP = range(300, 330)


class DeviceWorld:
    """The device `sw1` with a target `snmp`. `minutes` are those of its history, up to now."""

    def __init__(self, services: Services, minutes: int = 600, ports: int = 3) -> None:
        self.services = services
        self.board = services.board
        draft = DeviceDraft("sw1", "192.0.2.1", site="west", tags=("core",))
        target = TargetDraft(collector="snmp", interval_ms=MINUTE, options={"modules": ["if_mib"]})
        devices.add(services.engine, draft, [target])
        devices.add(services.engine, DeviceDraft("other", "192.0.2.2", site="east"), [])
        self.id = targets.show(services.engine, "sw1", "snmp").id
        self.now_ms = self.board.now_ms()
        polled = [ago for ago in range(minutes, -1, -1) if ago not in GAP]
        Writer(services.engine).write([self._poll(ago, ports) for ago in polled], self.now_ms)
        run_ledger.write(services.engine, [self._run(ago) for ago in polled])
        spec = TargetSpec(self.id, 1, QUEUE, MINUTE, 5_000)
        self.board.place("", [(spec, self.now_ms + MINUTE)], 1)
        self._announce()
        self._claims = 0
        self.added: list[int] = []

    def finish(self, code: str = "", message: str = "", **status: object) -> None:
        """End a poll of the target and of those that were added, as a worker does."""
        ids = [self.id, *self.added]
        self.board.demand(ids)
        self._claims += 1
        before = f"t{self._claims - 1}" if self._claims > 1 else ""
        claim = self.board.claim("", f"t{self._claims}", before, {QUEUE: 1_000}, LIMITS, None)
        self.board.start(claim.token, 0, "c", 15_000, ids)
        now_ms = self.board.now_ms()
        found = Status(
            state=State.FAILING if code else State.OK,
            since_ms=now_ms,
            run_ms=now_ms,
            finished_ms=now_ms,
            ok_ms=0 if code else now_ms,
            code=code,
            message=message,
            **status,  # type: ignore[arg-type]
        )
        place = Place.PARKED if found.reason else Place.DUE
        moves = [Move(each, now_ms + MINUTE, found.pack(), place) for each in ids]
        self.board.finish(claim.token, moves)

    def lead(self) -> None:
        """Let somebody lead, and a worker have the collector: targets are well then."""
        services = self.services
        Leadership(services.redis, services.keys, 60_000).take()
        self._announce(collectors={"snmp": "poller 0.1.0"})

    def _announce(self, **more: object) -> None:
        worker = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=[QUEUE], **more)  # type: ignore[arg-type]
        worker_registry.announce(self.services.redis, self.services.keys, worker)

    def add_targets(self, count: int) -> None:
        """Add targets `t00`, `t01` and so on, and put them on the board."""
        draft = TargetDraft(collector="snmp", interval_ms=MINUTE, options={"port": 1161})
        engine = self.services.engine
        for number in range(count):
            added = targets.add(engine, "sw1", replace(draft, name=f"t{number:02}"))
            self.added.append(added.id)
        specs = [(TargetSpec(each, 1, QUEUE, MINUTE, 5_000), self.now_ms + MINUTE)
                 for each in self.added]  # fmt: skip
        self.board.place("", specs, 2)

    def _poll(self, ago: int, ports: int) -> Stored:
        minute = 100_000 - ago
        found: list[Reading] = [Reading("sysUpTime", minute * 6_000.0)]
        for index in range(1, ports + 1):
            found += _port(index, minute)
        found += _gauges(minute)
        return Stored(self.id, self.now_ms - ago * MINUTE, ReadingSet.of(found))

    def _run(self, ago: int) -> Run:
        at_ms = self.now_ms - ago * MINUTE
        is_bad = ago == 120
        return Run(
            self.id,
            at_ms,
            Result.FAILED if is_bad else Result.OK,
            error_code="timeout" if is_bad else "",
            message="no answer in 3 tries" if is_bad else "",
            started_ms=at_ms + 40,
            finished_ms=at_ms + 240,
            samples=20,
            runner="w1@a",
            token="t",
        )


def _port(index: int, minute: int) -> Sequence[Reading]:
    labels = {"ifIndex": str(index), "ifName": f"eth{index}", "ifAlias": f"uplink {index} <b>"}
    octets = float(minute * index * 750_000)  # 100 kbit/s for each index
    return [
        Reading("ifOperStatus", 1.0 if index != 2 else 2.0, labels),
        Reading("ifAdminStatus", 1.0, labels),
        Reading("ifHighSpeed", 1.0, labels),
        Reading("ifHCInOctets", octets, labels, Kind.COUNTER, 64),
        Reading("ifHCOutOctets", octets / 2, labels, Kind.COUNTER, 64),
        Reading("ifInErrors", float(minute // 60), labels, Kind.COUNTER, 32),
    ]


def _gauges(minute: int) -> Sequence[Reading]:
    storage = {"hrStorageIndex": "31", "hrStorageDescr": "/var"}
    return [
        Reading("hrProcessorLoad", float(20 + minute % 5), {"hrDeviceIndex": "1"}),
        Reading("hrStorageAllocationUnits", 4096.0, storage),
        Reading("hrStorageSize", 1000.0, storage),
        Reading("hrStorageUsed", 250.0, storage),
        Reading("sysName", 1.0, {"sysName": "sw1"}, Kind.INFO),
    ]
