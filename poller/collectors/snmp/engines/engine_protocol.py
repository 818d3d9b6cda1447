"""The interface of an SNMP engine: one request, one response, one time limit.

Retries, loops, sizes and deadlines belong to `read.walker`; an engine only speaks the protocol.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from poller import errors
from poller.collectors.snmp.wire.value_types import Value

Row = tuple[str, Value]

TOO_BIG, NO_SUCH_NAME, NO_ACCESS, AUTHORIZATION_ERROR = 1, 2, 6, 16
#: RFC 3416 names of the error statuses that a reader may receive.
_STATUS_NAMES = {
    TOO_BIG: "tooBig",
    NO_SUCH_NAME: "noSuchName",
    3: "badValue",
    4: "readOnly",
    5: "genErr",
    NO_ACCESS: "noAccess",
    13: "resourceUnavailable",
    AUTHORIZATION_ERROR: "authorizationError",
}


class NoReply(errors.DeviceTimeout):
    """No response to one request within its time."""


class Garbled(errors.DeviceProtocolError):
    """The response cannot be decoded, or does not fit the engine's buffer."""


class ErrorStatus(errors.DeviceProtocolError):
    """The agent answered with an error status instead of values."""

    def __init__(self, status: int) -> None:
        name = _STATUS_NAMES.get(status, f"error {status}")
        super().__init__(f"the agent answered {name}")
        self.args = (status,)  # Celery rebuilds the exception from its arguments
        self.status = status


class Page(NamedTuple):
    """One response of a walk: rows within its subtree, and whether the subtree ended there."""

    rows: Sequence[Row]
    ended: bool


class PreparedRequest(NamedTuple):
    """A request in BER around its id, and the names that its response must have."""

    before_id: bytes
    after_id: bytes
    #: OID elements of the rows, in their order.
    names: bytes
    rows: int
    #: Contents of the OID of a subtree that must end after the rows; empty if it goes on.
    root: bytes
    #: Rows or OIDs requested.
    size: int


class Retry(Protocol):
    """Repeats an exchange until it is answered; passes the attempt's number and time limit."""

    async def __call__(
        self, exchange: Callable[[int, float], Awaitable[Any]], /, tries: int = 0
    ) -> Any: ...


class Silence(NamedTuple):
    """The likely cause of an agent that responds to the handshake and to no request; a remedy."""

    cause: str = ""
    hint: str = ""


class Link(Protocol):
    """A socket to one agent. It carries one request at a time; `close` must be called."""

    #: Maximum number of OIDs in one GET.
    max_get_oids: int
    #: Return exact types (`wire.value_types`); plain ones are faster.
    exact: bool
    #: The library cannot read this agent's responses, so the codec reads all of them.
    codec_only: bool
    #: Bytes of all datagrams so far.
    received: int
    #: The likely reason of an agent that responds to the handshake and to no request.
    silence: Silence

    @property
    def replays(self) -> bool:
        """Whether the link can send prepared requests now."""
        ...

    async def handshake(self, retry: Retry) -> None:
        """Exchange whatever must precede the first request, each message through `retry`."""
        ...

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        """The rows after `cursor` within `root`. Raises NoReply, Garbled, ErrorStatus."""
        ...

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        """The values of these OIDs, without those that the agent lacks."""
        ...

    async def next_oids(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        """The OID that follows each of these, in their order; "" at the end of the agent's view."""
        ...

    def send_prepared(self, request: PreparedRequest) -> int:
        """Send a prepared request and return its id; only while `replays`."""
        ...

    async def receive_prepared(
        self, pending: Mapping[int, PreparedRequest], wait_s: float
    ) -> tuple[int, list[Value] | None]:
        """The id of a pending request and the values of its response.

        None instead of values that are not as expected. Raises NoReply.
        """
        ...

    def pause(self) -> None:
        """Drop every datagram until `resume`."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None: ...
