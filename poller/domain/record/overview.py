"""The overview for operators: is polling on time, and what failed. Used by CLI, web and metrics."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics.poll_totals import PollTotals
from poller.domain.record.event_kinds import Event
from poller.domain.record.sink_report import SinkReport
from poller.domain.scheduling.worker_drain import Drain


class State(enum.StrEnum):
    """The state of a target for operators. Each enabled target has exactly one."""

    OK = "ok"
    DEGRADED = "degraded"  # the last poll was partial
    FAILING = "failing"
    UNKNOWN = "unknown"  # not polled yet


#: The results of a received notification. The names in the totals begin with `traps_`.
TRAP_RESULTS = (
    "accepted",  # the device is polled
    "ignored",  # genuine, but of a kind that causes no poll
    "unknown_sender",
    "bad_credential",
    "replayed",
    "malformed",
    "undecided",  # the credential could not be read at that time
    "dropped",  # over the limit of one address, or of waiting notifications
)


@dataclass(frozen=True, slots=True)
class Leader:
    name: str  # host:pid
    epoch: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Worker:
    name: str
    seen_ms: int
    started_ms: int
    polls: int
    in_flight: int
    rss_bytes: int
    tags: Mapping[str, str] = field(default_factory=dict)
    collectors: Mapping[str, str] = field(default_factory=dict)  # name -> distribution and version
    queues: Sequence[str] = ()  # shared queues of its subscriptions
    sessions: Sequence[str] = ()  # collectors that hold sessions
    own_queues: bool = False  # consumes a queue of its own beside each shared one
    costs: Mapping[str, float] = field(default_factory=dict)  # by collector: cost above 1
    broken: Mapping[str, str] = field(default_factory=dict)  # unusable collectors -> state of each
    #: Unusable jobs -> their `distribution`, `reason`, `hint` and `state`.
    broken_jobs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    slots: int = 1  # batches it polls at a time
    spool_waiting: int = 0  # polls with rows on its disk, once for each store they wait for
    spool_dropped: int = 0  # polls with rows that were dropped since the start
    instance: str = ""  # random: distinguishes workers of the same name
    polled_ms: int = 0  # heartbeat after the last poll; 0 before the first
    lent: int = 0  # batches in flight beyond its slots: they only wait for slow devices
    rate_limit: str = ""  # of `celery control rate_limit`: batches it starts, such as 1/m
    store_error: str = ""  # the error of a store that keeps it from polling or writing now
    secret_hits: int = 0  # credentials that a batch needed and the worker knew
    secret_misses: int = 0  # credentials that had to be read before a batch was polled
    pid: int = 0  # of its main process, on its host; 0 of a worker of an earlier release
    sinks: Sequence[SinkReport] = ()  # in the order of its settings
    version: str = ""  # of poller; "" of a worker of an earlier release
    drain: Drain | None = None  # it takes nothing new until the end of this
    unfinished: int = 0  # messages that it took and has not finished, retries that wait too

    @property
    def key(self) -> str:
        """A unique key, even if another worker has the same name."""
        if not self.instance:
            return self.name
        return f"{self.name}#{self.instance}"


@dataclass(frozen=True, slots=True)
class LastError:
    """One recent failure of a target."""

    at_ms: int
    target_id: int
    device: str
    target: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Lateness:
    """Start of the poll minus its slot, from a histogram of about 10 % resolution."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    bands: Sequence[int] = ()  # polls by LATENESS_EDGES_MS; the last is the rest


#: The upper edges of the bands in which the overview shows lateness.
LATENESS_EDGES_MS = (100.0, 1_000.0, 5_000.0, 30_000.0)


@dataclass(frozen=True, slots=True)
class LatenessSum:
    """The lateness of all polls since the board was made, from the same histogram."""

    count: int = 0
    sum_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """The polls of one slice of the recent past."""

    at_ms: int
    seconds: float
    polls: int
    failed: int
    lateness_p99_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """One queue: the polls its targets need, and the polls its workers do."""

    queue: str
    due: int
    overdue: int
    waiting: int  # published batches that no worker has taken yet
    needed_per_s: float  # polls
    done_per_s: float  # over the last minute
    workers: int  # living ones that serve it
    shortage: float | None  # factor of needed workers; 0 = they keep up, None = no polls are done
    urgent: int = 0  # of the due ones, those that go first
    due_soon: int = 0  # of the due ones, those whose slot is within SOON_MS, or past


@dataclass(frozen=True, slots=True)
class Overview:
    as_of_ms: int
    targets: int  # on the board
    states: Mapping[State, int]
    due: int  # waiting for their slot, or overdue
    overdue: int  # past their slot by more than a second
    in_flight: int
    parked: int
    polls_per_second: float  # over the last minute
    outcomes: Mapping[str, int]  # the last five minutes
    lateness: Lateness  # the last five minutes
    recent: Sequence[Point]  # oldest first, 10 s each, up to 15 minutes
    loads: Sequence[Load]  # by queue
    leader: Leader | None
    standbys: int
    workers: Sequence[Worker]
    errors: Sequence[LastError]  # newest first
    totals: Mapping[str, int]  # counters since the board was made: polls, samples, missed_slots...
    events: Sequence[Event] = ()  # the last changes, newest first
    held: int = 0  # wait for their dark site
    dark: Mapping[str, int] = field(default_factory=dict)  # dark sites -> since when, in ms
    long_overdue: int = 0  # overdue by more than two of their own intervals; a lower bound
    breakers_open: int = 0  # because of failures
    opened_by_hand: int = 0
    dead_letters: Mapping[str, int] = field(default_factory=dict)  # targets by reason
    prune_refused: str = ""  # why the last pass kept rows past their retention
    lateness_sum: LatenessSum = LatenessSum()
    unstarted: int = 0  # in flight for some seconds, and no worker has started them; an estimate
    #: Counters since the board was made, by collector.
    by_collector: Mapping[str, PollTotals] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        """The label of each worker by its key: its name, or the key if the name is not unique."""
        uses = Counter(worker.name for worker in self.workers)
        labels = {}
        for worker in self.workers:
            labels[worker.key] = worker.key if uses[worker.name] > 1 else worker.name
        return labels

    @property
    def urgent(self) -> int:
        """The due targets that go first."""
        return sum(load.urgent for load in self.loads)

    @property
    def unserved(self) -> dict[str, int]:
        """Waiting targets by queue, of queues that no living worker serves."""
        unserved = {}
        for load in self.loads:
            if not load.workers and load.due:
                unserved[load.queue] = load.due

        return unserved


#: A target whose slot is nearer than this is due soon.
SOON_MS = 12_000
#: A target that is overdue by more of its own intervals than this is not late, but stuck.
LONG_OVERDUE = 2


def is_long_overdue(due_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether a target waits for more than `LONG_OVERDUE` of its own intervals."""
    overdue_ms = now_ms - due_ms
    return overdue_ms > LONG_OVERDUE * interval_ms
