"""Asks collectors for the targets that suit an address, all at the same time.

A command asks in its own process, a page asks workers: the function that asks is an argument. A
scan asks about many addresses, a limited number at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.domain.inventory.host_port import HostPort

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Suggestion

#: Errors of an address where nothing answers.
_SILENCES = (errors.DeviceUnreachable, errors.DeviceTimeout, errors.DeviceDown)


@dataclass(frozen=True, slots=True)
class Login:
    """A credential to try: its name if it is stored, and its content where it is used.

    A page has the id instead of the content, which a worker decrypts.
    """

    name: str = ""
    credential: Credential | None = None
    credential_id: int | None = None
    stored_kind: str = ""  # of a credential without its content

    @property
    def kind(self) -> str:
        return self.credential.kind if self.credential is not None else self.stored_kind


NO_LOGIN = Login()


class NotAsked(Exception):
    """Raised when nobody could ask a collector: the text says why."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """A target that a collector suggests, and the name of the credential that worked."""

    collector: str
    options: Mapping[str, Any]
    reason: str
    credential: str = ""
    name: str = ""  # what the device calls itself
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of one collector: its suggestions, or the reason why there are none."""

    collector: str
    suggestions: Sequence[Suggested] = field(default=())
    reason: str = ""
    silent: bool = False  # the address did not answer, or was not asked
    code: str = ""  # of the error of the device
    tried: Sequence[str] = ()  # stored credentials that led to no suggestion


@dataclass(frozen=True, slots=True)
class AddressResult:
    """The results of all collectors at one address."""

    address: str
    discoveries: Sequence[Discovery]
    port: int | None = None  # the one that was given with the address

    @property
    def name(self) -> str:
        """The name of the device, which differs for two devices behind one address."""
        return str(HostPort(self.address, self.port))

    @property
    def suggestions(self) -> list[Suggested]:
        return [each for discovery in self.discoveries for each in discovery.suggestions]


@dataclass(frozen=True, slots=True)
class Plan:
    """The collectors that a scan asks at each address, with their options and the logins to try.

    A collector without options is not asked: some of its options must be given. Each login has
    `budget_s` seconds.
    """

    collectors: Sequence[Collector]
    options: Mapping[str, Any]
    logins: Mapping[str, Sequence[Login]]
    budget_s: float

    @property
    def longest_s(self) -> float:
        """The time that one address may take: the logins of a collector are tried in order."""
        return self.budget_s * max(map(len, self.logins.values()), default=1)


@dataclass(frozen=True, slots=True)
class Question:
    """One collector with one login at one address."""

    address: str
    collector: Any
    options: Any
    login: Login
    within_s: float


#: Returns the suggestions for a question in time. Raises DeviceError, NotAsked.
Ask = Callable[[Question], Awaitable[Sequence["Suggestion"]]]


async def ask_here(question: Question) -> Sequence[Suggestion]:
    """Ask a collector of this process. Raises DeviceError."""
    from poller.collectors import discovery_runner
    from poller.collectors.api import Poll

    address, collector = question.address, question.collector
    deadline = asyncio.get_running_loop().time() + question.within_s
    poll = Poll(0, address, address, question.options, question.login.credential, deadline)
    return await discovery_runner.suggestions(collector, poll, question.within_s)


async def scan(
    addresses: Sequence[str], plan: Plan, concurrency: int, on_done: Callable[[], object]
) -> list[AddressResult]:
    """The results of all addresses, in their order. `on_done` is called after each of them."""
    results: dict[str, AddressResult] = {}
    waiting = iter(addresses)

    async def work() -> None:
        for address in waiting:
            results[address] = AddressResult(address, await discover_all(address, plan))
            on_done()

    await asyncio.gather(*(work() for _ in range(min(concurrency, len(addresses)))))
    return [results[address] for address in addresses]


async def discover_all(address: str, plan: Plan, ask: Ask = ask_here) -> list[Discovery]:
    """The results of all collectors; each tries its logins one after the other."""
    return await asyncio.gather(*(_discover(address, each, plan, ask) for each in plan.collectors))


async def _discover(address: str, collector: Collector, plan: Plan, ask: Ask) -> Discovery:
    name = collector.name
    options = plan.options.get(name)
    if options is None:
        return Discovery(name, reason="some of its options must be given", silent=True)

    result = Discovery(name, reason="no credential of a kind it takes was named", silent=True)
    tried: list[str] = []
    for login in plan.logins[name]:
        tried += [login.name] if login.name else []
        try:
            found = await ask(Question(address, collector, options, login, plan.budget_s))
        except errors.DeviceError as error:
            is_silent = isinstance(error, _SILENCES)
            result = Discovery(name, (), str(error), is_silent, error.error_code)
            continue
        except NotAsked as error:
            result = Discovery(name, reason=str(error))
            continue
        if found:
            return Discovery(name, [_suggested(name, each, login) for each in found])
        result = Discovery(name, reason="it suggests nothing")
    return replace(result, tried=tried)


def _suggested(collector: str, found: Suggestion, login: Login) -> Suggested:
    return Suggested(collector, found.options, found.reason, login.name, found.name, found.facts)
