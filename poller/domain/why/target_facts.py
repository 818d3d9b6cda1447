"""The facts that explain a target: values that the service read, with one instant for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from poller.domain.alerts.alert import Alert
from poller.domain.failures import circuit_breaker, quarantine
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.failures.site_outage import Outage
from poller.domain.record import run
from poller.domain.record.overview import Leader, Worker
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Adaptive, Policy


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """Errors of the stores at this read. An empty text: no error."""

    redis: str = ""  # the board cannot be read
    write: str = ""  # Redis can be read, but takes no writes
    sql: str = ""


class RequiredTag(NamedTuple):
    """A tag that the workers of a target must have."""

    text: str  # `zone=dmz`
    of: str  # `site`, `device` or `target`: who requires it


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """A target with its device, site and credential, from SQL."""

    target_id: int
    device_id: int
    device: str
    target: str
    address: str
    site: str
    collector: str
    queue: str  # of its domain, from the required tags of site, device and target
    interval_ms: int
    timeout_ms: int
    target_enabled: bool = True
    device_enabled: bool = True
    policy: Policy = Policy.FIXED
    min_ms: int | None = None
    max_ms: int | None = None
    staleness: str | None = None
    credential: str = ""  # name of the credential that a poll uses; empty: none
    credential_of: str = ""  # `target` or `device`
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()  # of the device
    required: Sequence[RequiredTag] = ()  # of its workers

    @property
    def name(self) -> str:
        return f"{self.device}/{self.target}"

    @property
    def enabled(self) -> bool:
        return self.target_enabled and self.device_enabled

    def adaptive(self, numbers: Adaptive) -> Adaptive:
        """The numbers of the settings with the bounds of this target."""
        base_ms = self.interval_ms
        return numbers.with_bounds(self.min_ms or base_ms, base_ms, self.max_ms or base_ms)


@dataclass(frozen=True, slots=True)
class HandOpening:
    """A breaker that an operator keeps open."""

    until_ms: int
    since_ms: int
    who: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Flight:
    """The run of a target in flight."""

    token: str
    plan_ms: int
    attempts: int  # 0: its batch is claimed, and no worker has started it
    lease_ms: int  # end of the lease
    holder: str = ""  # the worker that started it; empty before the start

    @property
    def claimed_ms(self) -> int:
        """When the leader claimed the run; its plan for a token of another form."""
        return run.claimed_ms(self.token) or self.plan_ms


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A target as it stands on the board."""

    place: str  # due, urgent, in_flight, parked or held; empty for none of them
    at_ms: int  # when it is due, or its slow retry; 0: at once, or unknown
    queue: str
    interval_ms: int
    timeout_ms: int
    status: Status = field(default_factory=Status)
    opening: HandOpening | None = None
    flight: Flight | None = None

    def breaker_state(self, now_ms: int) -> BreakerState:
        """The state of the breaker; open while an operator keeps it open."""
        if self.opening:
            return BreakerState.OPEN
        return circuit_breaker.state_at(self.status.breaker, now_ms)


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The site of a target: its outage, and the other devices there."""

    name: str = ""  # empty for a device without a site
    outage: Outage | None = None
    neighbours: int = 0  # other devices of the site that were polled
    answering: int = 0  # those of them that respond
    is_sample: bool = False  # the site has more devices than were looked at


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The queue of a target."""

    batches: int = 0  # published, and no worker has taken them
    overdue: int = 0  # targets of the queue past their time


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The processes of the cluster."""

    leader: Leader | None = None
    standbys: int = 0
    clock_ms: int = 0  # of the last claim
    living: Sequence[Worker] = ()
    lost: Sequence[Worker] = ()
    #: Crash records of the target's collector, by distribution with its version.
    crashes: Mapping[str, quarantine.Record] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of the settings that decide when a target is polled."""

    adaptive: Adaptive = field(default_factory=Adaptive)
    breaker: circuit_breaker.Rules = field(default_factory=circuit_breaker.Rules)
    confirm_ms: int = 30_000  # interval of a failing target until its breaker opens
    slow_retry_ms: int = 1_800_000  # of a dead letter


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """All facts of one target at `now_ms` by the cluster's clock.

    `inventory` is None while SQL is away, `board` while Redis is away or for a target that is not
    on the board.
    """

    now_ms: int
    target_id: int
    asked: str = ""  # the name that was asked for, while SQL cannot tell the target
    stores: StoreFaults = StoreFaults()
    inventory: InventoryRow | None = None
    board: BoardRow | None = None
    site: SiteFacts = SiteFacts()
    queue: QueueFacts = QueueFacts()
    cluster: ClusterFacts = ClusterFacts()
    runs: Sequence[Run] = ()  # newest first
    alerts: Sequence[Alert] = ()  # the open ones of the target and of its device, oldest first
    rules: Rules = field(default_factory=Rules)

    @property
    def name(self) -> str:
        """`sw1/snmp`; the asked name or the id while the inventory cannot be read."""
        if self.inventory:
            return self.inventory.name
        return self.asked or f"target {self.target_id}"

    @property
    def queue_name(self) -> str:
        """The queue on the board; that of the inventory for a target that is not there."""
        if self.board:
            return self.board.queue
        return self.inventory.queue if self.inventory else ""

    @property
    def interval_ms(self) -> int:
        """The present interval: the last decision of an adaptive target, else the stored one."""
        decision = self.board.status.decision if self.board else None
        if decision:
            return decision.chosen_ms
        if self.board:
            return self.board.interval_ms
        return self.inventory.interval_ms if self.inventory else 0

    @property
    def status(self) -> Status:
        return self.board.status if self.board else Status()

    @property
    def serving(self) -> list[Worker]:
        """The living workers that take batches of the target's queue."""
        return [worker for worker in self.cluster.living if self.queue_name in worker.queues]
