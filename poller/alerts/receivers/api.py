"""The receiver contract: a receiver sends one notice, or raises StoreError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

from poller.domain.alerts.telling.notice import Notice, ToldAlert
from poller.domain.inventory.api_version import Served, Stated

API_VERSION = 1

#: Contract versions of this release. The promise is that of `poller.collectors.api.SERVED`.
SERVED: Mapping[int, Served] = {1: Served()}

#: Alerts of one notice for a receiver that does not keep state; the notice counts the others.
MOST_ALERTS = 100
#: Alerts of one part of a notice, for a receiver that keeps state.
PART_ALERTS = 500


@dataclass(frozen=True, slots=True)
class Place:
    """The facts that a receiver may know of the platform: its own name, and the URL of the page."""

    name: str
    web_url: str = ""


@runtime_checkable
class Receiver(Protocol):
    """A receiver is made with `Receiver(place, options)`. One thread at a time uses it.

    Attributes of the class:

    Options: a pydantic model with extra="forbid": the table of the receiver in poller.toml.
    keeps_state: True for a receiver that is told of every alert of a notice, and again of all that
        fire every `resend_s` seconds by its method `resend`. The default is False.
    """

    name: ClassVar[str]
    api_version: ClassVar[Stated]
    Options: ClassVar[Any]

    def send(self, notice: Notice, key: str) -> str:
        """Send a notice and return what was answered, in a line.

        `key` is the same in every attempt. Raises StoreUnavailable if another attempt can succeed,
        any other StoreError if the receiver refuses the notice for good.
        """

    def close(self) -> None:
        """End connections. The receiver is not used again."""


class StateReceiver(Receiver, Protocol):
    """A receiver that wants to be told again of what fires."""

    keeps_state: ClassVar[bool]
    resend_s: float

    def resend(self, alerts: Sequence[ToldAlert]) -> str:
        """Send all alerts that fire. Raises as `send` does."""


def keeps_state(receiver: Any) -> TypeGuard[StateReceiver]:
    """Whether a receiver, or its class, is a StateReceiver."""
    return bool(getattr(receiver, "keeps_state", False))
