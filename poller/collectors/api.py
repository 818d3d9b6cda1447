"""The collector contract: what a plugin author implements, and all that a plugin may rely on.

A collector is a class with a name, an options model and one async generator. It never sees the
schedule, the database or Redis, and it never retries across polls: that is the platform's work.
Optional abilities are small extra protocols; a collector that lacks them simply does not have them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict

from poller.collectors.credentials import Credential
from poller.domain.inventory.api_version import Served, Stated
from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series, SeriesSet
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Schedule
from poller.errors import (
    CollectorCrashed,
    DeviceAuthFailed,
    DeviceBusy,
    DeviceDown,
    DeviceError,
    DeviceProtocolError,
    DeviceTimeout,
    DeviceUnreachable,
    DeviceUnsupported,
    DeviceUnwell,
    OptionsUnusable,
)

if TYPE_CHECKING:
    from poller.collectors.sessions import Sessions

S = TypeVar("S")
T = TypeVar("T")

#: The contract's version. A collector states the one it was written for, or the first and the last it works with.
API_VERSION = 1

#: What this release serves. A version that gets a successor is served for a year more, and two minor releases at least:
#: until then `ends` names the release without it, `poller collectors` says so, and `adapt` keeps its plugins working.
SERVED: Mapping[int, Served] = {1: Served()}


class Options(BaseModel):
    """Base of every options model: unknown keys are refused, so a typo never passes silently."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of one target: all that a collector is given.

    `deadline` is an instant of the running event loop's clock (`loop.time()`); the platform cuts the
    collector off there, so use it to divide the time that is left, not to guard yourself.
    """

    target_id: int
    device: str
    address: str
    options: Any
    credential: Credential | None
    deadline: float
    #: Yours to fill: what this worker remembers of the target between polls (shape caches and the like).
    #: It is dropped when the target or its device is edited, and may be dropped at any time. Use your
    #: collector's name as the key; keys that begin with `poller.` are the platform's.
    memory: dict[str, Any] = field(default_factory=dict)
    #: The worker's; use `session`. Without it a session lasts for one poll.
    sessions: Sessions | None = None

    async def session(self, keeper: KeepsSessions[S], work: Callable[[S], Awaitable[T]]) -> T:
        """Run `work` with a session of this device: a kept one if there is one, else it is opened.

        No other poll uses it meanwhile. If `work` returns, the session is kept; if it raises anything, the session is
        closed. If it raises SessionLost on a kept session, it is run once more with a new one. Raises DeviceBusy when
        its turn did not come in time, and whatever `open_session` and `work` raise.
        """
        if self.sessions is not None:
            return await self.sessions.use(keeper, self, work)
        from poller.collectors.sessions import Sessions

        brief = Sessions()
        try:
            return await brief.use(keeper, self, work)
        finally:
            await brief.close()


@dataclass(frozen=True, slots=True)
class PartFailed:
    """Yield this when one part (a table, a menu) failed and the rest goes on: the outcome is `partial`."""

    part: str
    error: DeviceError


@dataclass(frozen=True, slots=True)
class Traffic:
    """Yield this to say what a poll asked of the network: requests sent, and how many of them were repeats."""

    sent: int
    retried: int = 0


Yielded = Reading | ReadingSet | PartFailed | Traffic


@runtime_checkable
class Collector(Protocol):
    """Implement this. One instance serves a whole worker process, so keep per-device state in `memory`.

    `collect` is an async generator; or a plain one, if the class says `blocking` (see below).
    """

    name: ClassVar[str]
    Options: ClassVar[type[Options]]
    #: Credential models it accepts, preferred first; empty when it needs none.
    credentials: ClassVar[tuple[type[Credential], ...]]

    @property
    def api_version(self) -> Stated:
        """`1`, or `(1, 2)`: the first and the last version it works with. A plain attribute of the class will do."""
        ...

    def collect(self, poll: Poll) -> AsyncIterator[Yielded] | Iterator[Yielded]:
        """Yield readings. Raise a `DeviceError` for the device's trouble; what was yielded is kept."""
        ...


@runtime_checkable
class Blocking(Protocol):
    """Ability: `blocking = True`, and `collect` is a plain generator (`def`, not `async def`) that may block.

    Each poll runs in a thread. `poll.deadline` is an instant of `time.monotonic()`: give your sockets time-outs that
    end before it, since nobody can stop a thread. Several polls run at the same time, in one instance.
    """

    blocking: ClassVar[bool]


@runtime_checkable
class Isolated(Protocol):
    """Ability: `isolated = True` to run in a process of its own, with limits: for code that may crash or leak.

    Costs a second process per worker process, and some CPU per poll. `poll.memory` lives in that process.
    """

    isolated: ClassVar[bool]


@runtime_checkable
class Costs(Protocol):
    """Ability: `cost = 8.0` when a poll takes as much of a worker as eight ordinary ones do.

    Batches of its targets get so much smaller, and with them the number of its polls at a time.
    """

    cost: ClassVar[float]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A target that would suit a device: the options it should have, and why, in a sentence."""

    options: Mapping[str, Any]
    reason: str


@runtime_checkable
class Discovers(Protocol):
    """Ability: find out whether a device is one for this collector, and which targets it should have.

    `poller discover ADDRESS` asks each that can. The poll's options are the defaults, or what the operator gave.
    """

    def discover(self, poll: Poll) -> AsyncIterator[Suggestion]:
        """Yield suggestions; none, or a DeviceError, says that it is nothing for us. An async generator."""
        ...


@runtime_checkable
class Closeable(Protocol):
    """Ability: release what the instance holds (sessions, sockets) when the worker stops."""

    async def close(self) -> None: ...


class SessionLost(DeviceUnreachable):
    """The device had ended a session before anything was read of it in this poll: worth a new one, and no error."""


@runtime_checkable
class KeepsSessions(Protocol[S]):
    """Ability: keep a connection to a device between polls. In `collect`, use it by `await poll.session(self, work)`.

    A session belongs to a device, its address, a version of its credential, and what `session_key` says. How long it
    lasts, how many there are and how fast they are opened is up to the operator.
    """

    name: ClassVar[str]

    def session_key(self, poll: Poll) -> Hashable:
        """What else tells sessions of this device apart: a port, TLS. No secrets."""
        ...

    async def open_session(self, poll: Poll) -> S:
        """Connect and log in. Raise a DeviceError, and leave nothing open then."""
        ...

    async def close_session(self, session: S, *, politely: bool) -> None:
        """End it. Not politely: it is out of step, cut it at once. A second is all there is."""
        ...


@runtime_checkable
class Documented(Protocol):
    """Ability: say what its metrics mean, for people and for the `# HELP` lines of an exposition."""

    def help_texts(self, options: Any) -> Mapping[str, str]:
        """Metric name to one sentence, for a target with these options."""
        ...


@runtime_checkable
class ChecksOptions(Protocol):
    """Ability: look more closely at options when a target is saved: are the files there that they name?

    The options model itself must not: a worker judges options once, and a file may come later.
    """

    def check_options(self, options: Any) -> None:
        """Raise a ConfigError that says what is wrong."""
        ...


@runtime_checkable
class BringsCredential(Protocol):
    """Ability: with some options a target needs no credential: they say where one is (a file of the worker), or that
    nobody has to log in. One of the device's that is of another kind is then no mistake, and is not handed over."""

    def brings_credential(self, options: Any) -> bool: ...


def needs_credential(collector: Collector, options: Any) -> bool:
    """Must a target with these options have one? Raises CollectorCrashed, whatever the collector raises."""
    try:
        if isinstance(collector, BringsCredential) and collector.brings_credential(options):
            return False
    except BaseException as error:
        text = f"collector {collector.name} raised {type(error).__name__} in brings_credential"
        raise CollectorCrashed(text) from error
    return bool(collector.credentials)


@runtime_checkable
class Scheduled(Protocol):
    """Ability: say how often its targets are polled unless their owner says otherwise.

    What is left None comes from the settings. It is stored with a target when that is added: a later
    release of the collector changes only targets that are added later.
    """

    schedule: ClassVar[Schedule]


__all__ = [
    "API_VERSION",
    "Blocking",
    "BringsCredential",
    "ChecksOptions",
    "Closeable",
    "Collector",
    "Costs",
    "Credential",
    "DeviceAuthFailed",
    "DeviceBusy",
    "DeviceDown",
    "DeviceError",
    "DeviceProtocolError",
    "DeviceTimeout",
    "DeviceUnreachable",
    "DeviceUnsupported",
    "DeviceUnwell",
    "Discovers",
    "Documented",
    "Isolated",
    "KeepsSessions",
    "Kind",
    "Options",
    "OptionsUnusable",
    "PartFailed",
    "Policy",
    "Poll",
    "Reading",
    "ReadingSet",
    "SERVED",
    "Schedule",
    "Scheduled",
    "Series",
    "SeriesSet",
    "SessionLost",
    "Suggestion",
    "Traffic",
    "Yielded",
]
