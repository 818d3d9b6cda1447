"""What a person wants to see first: is polling on time, and what broke? Plain values for CLI, page and metrics."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.record.event_kinds import Event


class State(enum.StrEnum):
    """The state of a target, as people see it. Each enabled target has exactly one."""

    OK = "ok"
    DEGRADED = "degraded"  # the last poll was partial
    FAILING = "failing"
    UNKNOWN = "unknown"  # not polled yet


#: What may become of a notification. Each that was received is one of these; names in the totals begin with `traps_`.
TRAP_RESULTS = (
    "accepted",  # its device is polled
    "ignored",  # true, and of a kind that has nothing polled
    "unknown_sender",
    "bad_credential",
    "replayed",
    "malformed",
    "undecided",  # the credential could not be read just then
    "dropped",  # more than one address may send, or than can wait
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
    queues: Sequence[str] = ()  # the ones it takes batches from
    sessions: Sequence[str] = ()  # those of its collectors that keep sessions
    costs: Mapping[str, float] = field(
        default_factory=dict
    )  # what a poll costs, of collectors that cost more than 1
    broken: Mapping[str, str] = field(
        default_factory=dict
    )  # collectors it has and cannot use -> the state of each
    slots: int = 1  # batches it polls at a time
    spool_waiting: int = (
        0  # polls whose rows wait on its disk, counted once for each store they wait for
    )
    spool_dropped: int = 0  # of these, the ones it had to drop since it started
    instance: str = ""  # random: tells workers of the same name apart
    polled_ms: int = 0  # heartbeat after its last poll; 0 if it did none yet

    @property
    def key(self) -> str:
        """Its own, even if another worker has the same name."""
        return f"{self.name}#{self.instance}" if self.instance else self.name


@dataclass(frozen=True, slots=True)
class LastError:
    at_ms: int
    target_id: int
    device: str
    target: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Lateness:
    """Start of the poll minus its slot, in milliseconds, from a histogram of about 10 % resolution."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """One slice of the recent past."""

    at_ms: int
    seconds: float
    polls: int
    failed: int
    lateness_p99_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """One queue: what its targets need and what its workers do."""

    queue: str
    due: int
    overdue: int
    waiting: int  # batches, published and not taken yet
    needed_per_s: float  # polls
    done_per_s: float  # over the last minute
    workers: int  # living ones that serve it
    shortage: (
        float | None
    )  # so many times the workers are needed; 0 = they keep up, None = nothing is done


@dataclass(frozen=True, slots=True)
class Overview:
    as_of_ms: int
    targets: int  # on the board
    states: Mapping[State, int]
    due: int  # waiting for their slot, or overdue
    overdue: int  # of these, past their slot by more than a second
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
    totals: Mapping[
        str, int
    ]  # counters since the board was made: polls, samples, missed_slots, ...
    events: Sequence[Event] = ()  # the last changes, newest first
    held: int = 0  # wait for their site, which is dark
    dark: Mapping[str, int] = field(default_factory=dict)  # sites that are, and since when, in ms
    long_overdue: int = (
        0  # of the overdue ones, by more than two of their own intervals; at least so many
    )
    breakers_open: int = 0  # because of failures
    opened_by_hand: int = 0
    dead_letters: Mapping[str, int] = field(
        default_factory=dict
    )  # targets that need a person, by reason

    @property
    def labels(self) -> dict[str, str]:
        """What to call each worker, by its key: its name, unless another one has the same."""
        names = Counter(worker.name for worker in self.workers)
        return {
            worker.key: worker.key if names[worker.name] > 1 else worker.name
            for worker in self.workers
        }

    @property
    def unserved(self) -> dict[str, int]:
        """Targets that wait, by queue that no living worker takes."""
        return {load.queue: load.due for load in self.loads if load.due and not load.workers}


#: A target that waits for more than so many of its own intervals is not late, it is stuck.
LONG_OVERDUE = 2


def is_long_overdue(due_ms: int, interval_ms: int, now_ms: int) -> bool:
    return now_ms - due_ms > LONG_OVERDUE * interval_ms
