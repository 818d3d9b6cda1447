"""The collector contract: everything a plugin may implement, and everything it may rely on.

A collector is a class with a name, an options model and one generator that yields readings. The
platform owns the schedule, the database, Redis and the retries; a collector sees none of them.
Each optional ability is a small protocol; a collector has the ability if it has the attributes.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
)
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
    DeviceRejected,
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

#: The version of this contract. A collector states the version it was written for, or the first
#: and the last version it works with.
API_VERSION = 1

#: The versions this release serves. A version that has a successor is served for at least one
#: year and two minor releases. Meanwhile `ends` names the release that drops the version,
#: `poller collectors` shows a notice, and `adapt` translates its plugins to the newest version.
SERVED: Mapping[int, Served] = {1: Served()}


class Options(BaseModel):
    """Base class of every options model. Unknown keys are refused, so that typos are reported."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: The option that the port of an address (`192.0.2.1:1161`) sets. Empty: a port in an address
    #: means nothing to the collector.
    address_port: ClassVar[str] = "port"


def port_option(model: type[Options]) -> str:
    """Return the option that the port of an address sets; "" if the model has none."""
    name = getattr(model, "address_port", "")  # a plugin may have an option of this name
    return name if name in model.model_fields else ""


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of one target: all input of a collector.

    The platform ends the poll at `deadline`, an instant of the event loop's clock (`loop.time()`).
    A collector needs no timeout for the whole poll; it uses the deadline to divide the time left.
    """

    target_id: int
    device: str
    address: str
    options: Any
    credential: Credential | None
    deadline: float
    #: Data that this worker caches for the target between polls, such as series sets. The
    #: collector may store anything under its own name; keys that begin with `poller.` belong to
    #: the platform. An edit of the target or its device clears the memory, and so may the
    #: platform at any time.
    memory: dict[str, Any] = field(default_factory=dict)
    #: The session pool of the worker. Collectors call `session` instead. Without a pool every
    #: session lasts for one poll.
    sessions: Sessions | None = None
    #: The workers cannot keep the plan at present, and this poll starts long after its slot. What
    #: its readings do not need can wait, such as a check of what rarely changes.
    is_behind: bool = False

    async def session(self, keeper: KeepsSessions[S], work: Callable[[S], Awaitable[T]]) -> T:
        """Run `work` with a session to this device: an open one if there is one, else a new one.

        No other poll uses the session at the same time. If `work` returns, the session stays open
        for later polls. If `work` raises anything, the session is closed. If `work` raises
        SessionLost on a session of an earlier poll, it runs once more with a new session.

        Raises DeviceBusy if no session is free in time, and everything that `open_session` and
        `work` raise.
        """
        if self.sessions is not None:
            return await self.sessions.use(keeper, self, work)

        from poller.collectors.sessions import Sessions

        pool = Sessions()
        try:
            return await pool.use(keeper, self, work)
        finally:
            await pool.close()


@dataclass(frozen=True, slots=True)
class PartFailed:
    """Yield this if one part of a poll (a table, a menu) failed. The outcome is then `partial`."""

    part: str
    error: DeviceError


@dataclass(frozen=True, slots=True)
class Traffic:
    """Yield this to report the requests of a poll: all that were sent, and the repeated ones.

    A collector that yields its readings some time after they arrived gives the instant of the last
    answer, by the clock of the event loop. Otherwise readings arrive when they are yielded.
    """

    sent: int
    retried: int = 0
    answered_mono: float = 0.0


Yielded = Reading | ReadingSet | PartFailed | Traffic


@runtime_checkable
class Collector(Protocol):
    """The class a plugin implements.

    One instance serves all targets of a worker process. State of a single target belongs in
    `poll.memory`, not in the instance.
    """

    name: ClassVar[str]
    Options: ClassVar[type[Options]]
    #: Accepted credential models, preferred one first; empty if the collector needs none.
    credentials: ClassVar[tuple[type[Credential], ...]]

    @property
    def api_version(self) -> Stated:
        """The supported contract: `1`, or `(1, 2)` for the first and the last version.

        A plain class attribute is enough.
        """
        ...

    def collect(self, poll: Poll) -> AsyncIterator[Yielded] | Iterator[Yielded]:
        """Yield the readings of one poll.

        This is an async generator, or a plain generator if the class is `Blocking`. It raises a
        `DeviceError` for a failure of the device; readings yielded before the error are stored.
        """
        ...


# Optional abilities.


@runtime_checkable
class Blocking(Protocol):
    """Ability: `blocking = True` declares that `collect` is a plain generator and may block.

    Each poll runs in a thread, and several polls run in one instance at the same time. Here
    `poll.deadline` is an instant of `time.monotonic()`. Sockets need timeouts that end before the
    deadline, because the platform cannot stop a thread.
    """

    blocking: ClassVar[bool]


@runtime_checkable
class Isolated(Protocol):
    """Ability: `isolated = True` runs the collector in a process of its own, with limits.

    Use it for code that may crash or leak memory. It costs a second process per worker process,
    and some CPU time per poll. `poll.memory` lives in the second process.
    """

    isolated: ClassVar[bool]


@runtime_checkable
class Costs(Protocol):
    """Ability: `cost = 8.0` declares that one poll needs as much of a worker as eight usual ones.

    Batches of the collector's targets shrink by that factor, and so does the number of its polls
    that run at the same time.
    """

    cost: ClassVar[float]


@runtime_checkable
class Scheduled(Protocol):
    """Ability: declare the default schedule of the collector's targets.

    A field that is None comes from the settings. The schedule is stored when a target is added,
    so a later release of the collector affects only targets that are added later.
    """

    schedule: ClassVar[Schedule]


@runtime_checkable
class Documented(Protocol):
    """Ability: explain the collector's metrics, for people and for `# HELP` lines."""

    def help_texts(self, options: Any) -> Mapping[str, str]:
        """Return one sentence for each metric name of a target with these options."""
        ...


@runtime_checkable
class ChecksOptions(Protocol):
    """Ability: check options against the outside world when a target is saved.

    A check that a named file exists belongs here, not in the options model: a worker validates
    the model once, and the file may appear later.
    """

    def check_options(self, options: Any) -> None:
        """Raise a ConfigError that states the mistake and its fix."""
        ...


@runtime_checkable
class BringsCredential(Protocol):
    """Ability: declare that targets with certain options need no stored credential.

    Such options name a credential on the worker (a file), or the device needs no login. A device
    credential of another kind is then no mistake, and the collector does not receive it.
    """

    def brings_credential(self, options: Any) -> bool: ...


@runtime_checkable
class Cautions(Protocol):
    """Ability: say what is risky about options that are valid all the same.

    The texts are printed when a target is saved or collected, and stop nobody.
    """

    def cautions(self, options: Any) -> Iterable[str]: ...


@runtime_checkable
class SendsClearSecrets(Protocol):
    """Ability: declare the options with which the secret crosses the network in clear.

    `poller status` counts the targets that have one of these options with this value.
    """

    clear_secrets: ClassVar[Mapping[str, Any]]


def cautions(collector: Collector, options: Any) -> list[str]:
    """Return what is risky about options. Raises CollectorCrashed for anything it raises."""
    if not isinstance(collector, Cautions):
        return []
    try:
        return [str(text) for text in collector.cautions(options)]
    except BaseException as error:  # door: a plugin may raise anything
        text = f"collector {collector.name} raised {type(error).__name__} in cautions"
        raise CollectorCrashed(text) from error


def needs_credential(collector: Collector, options: Any) -> bool:
    """Return whether a target with these options needs a stored credential.

    Raises CollectorCrashed for anything that the collector raises.
    """
    try:
        if isinstance(collector, BringsCredential) and collector.brings_credential(options):
            return False
    except BaseException as error:  # door: a plugin may raise anything
        text = f"collector {collector.name} raised {type(error).__name__} in brings_credential"
        raise CollectorCrashed(text) from error
    return bool(collector.credentials)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A target that suits a device: its options, and the reason in one sentence.

    `name` is what the device calls itself, `facts` are further texts that it says about itself,
    such as a version or a model. People see them before they add the device.
    """

    options: Mapping[str, Any]
    reason: str
    name: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Discovers(Protocol):
    """Ability: suggest targets for a device. `poller discover ADDRESS` uses it."""

    def discover(self, poll: Poll) -> AsyncIterator[Suggestion]:
        """Yield suggestions; an async generator.

        `poll.options` holds the defaults, or the operator's options. No suggestion, or a
        DeviceError, means that the device does not suit this collector.
        """
        ...


@runtime_checkable
class Closeable(Protocol):
    """Ability: release the instance's resources (sockets, files) when the worker stops."""

    async def close(self) -> None: ...


class SessionLost(DeviceUnreachable):
    """The device ended an open session before this poll read anything: a new session may work."""


@runtime_checkable
class KeepsSessions(Protocol[S]):
    """Ability: keep a connection to a device open between polls.

    `collect` calls `await poll.session(self, work)`. A session belongs to one device, address,
    credential version and `session_key`. The operator's settings limit the age and the number of
    sessions and the rate of new ones.
    """

    name: ClassVar[str]

    def session_key(self, poll: Poll) -> Hashable:
        """Return what else separates sessions of one device: a port, TLS. No secrets."""
        ...

    async def open_session(self, poll: Poll) -> S:
        """Connect and log in. On failure raise a DeviceError and leave nothing open."""
        ...

    async def close_session(self, session: S, *, politely: bool) -> None:
        """Close the session within one second.

        With `politely=False` the protocol is out of step: cut the connection at once.
        """
        ...


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
    "DeviceRejected",
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
