"""What the guard needs of an SNMP engine: one request, its one answer, a time limit, and no cleverness.

Retries, loops, sizes and deadlines are the guard's (`walker`); an engine only speaks the protocol.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from poller import errors
from poller.collectors.snmp.wire.value_types import Value

Row = tuple[str, Value]

#: RFC 3416 error-status names a reader may get.
_STATUS_NAMES = {
    1: "tooBig",
    2: "noSuchName",
    3: "badValue",
    4: "readOnly",
    5: "genErr",
    6: "noAccess",
    13: "resourceUnavailable",
    16: "authorizationError",
}
TOO_BIG, NO_SUCH_NAME, NO_ACCESS, AUTHORIZATION_ERROR = 1, 2, 6, 16


class NoReply(errors.DeviceTimeout):
    """No answer to this one request within its time."""


class Garbled(errors.DeviceProtocolError):
    """The answer could not be decoded, or did not fit the engine's buffer."""


class ErrorStatus(errors.DeviceProtocolError):
    """The agent answered with an error status instead of values."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the agent answered {_STATUS_NAMES.get(status, f'error {status}')}")
        self.args = (status,)  # what rebuilds it
        self.status = status


class Page(NamedTuple):
    """One answer of a walk: rows within the walked subtree, and whether the subtree ended there."""

    rows: Sequence[Row]
    ended: bool


class Ask(Protocol):
    """Makes one request until it is answered; the request is given the try's number and its time."""

    async def __call__(
        self, exchange: Callable[[int, float], Awaitable[Any]], /, tries: int = 0
    ) -> Any: ...


class Link(Protocol):
    """A way to one agent. One request at a time; `close` must be called."""

    #: Most OIDs to put in one GET.
    at_once: int
    #: Rows carry exact types (`snmp.types`), where the engine can tell them; else plain ones, which are faster.
    exact: bool
    #: This agent sent something the engine cannot read, or must not see.
    wary: bool

    async def begin(self, ask: Ask) -> None:
        """Whatever must be exchanged before the first request, each request through `ask`."""
        ...

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        """The rows after `cursor` within `root`. Raises NoReply, Garbled, ErrorStatus, other DeviceErrors."""
        ...

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        """The values of these OIDs; those the agent does not have are left out."""
        ...

    async def after(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        """The OID that follows each of these, in their order; an empty text where nothing does."""
        ...

    def rest(self) -> None:
        """Nothing is asked for a while: what comes meanwhile is thrown away."""
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...
