"""Asks collectors in this process for the targets that suit an address, all at the same time.

A scan asks them about many addresses, a limited number at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from poller import errors, plugins
from poller.domain.inventory.host_port import HostPort

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Discovers, Poll

#: Errors of an address where nothing answers.
_SILENCES = (errors.DeviceUnreachable, errors.DeviceTimeout, errors.DeviceDown)

#: A collector that suggests more than this for one address does not end by itself.
MAXIMUM = 100


@dataclass(frozen=True, slots=True)
class Login:
    """A credential to try: its name if it is stored, and its content if one is needed."""

    name: str = ""
    credential: Credential | None = None


NO_LOGIN = Login()


@dataclass(frozen=True, slots=True)
class Suggested:
    """A target that a collector suggests, and the name of the credential that worked."""

    collector: str
    options: Mapping[str, Any]
    reason: str
    credential: str = ""


class _Silent(errors.DeviceError):
    """The address did not answer."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of one collector: its suggestions, or the reason why there are none."""

    collector: str
    suggestions: Sequence[Suggested] = field(default=())
    reason: str = ""
    silent: bool = False  # the address did not answer, or was not asked


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


async def discover_all(address: str, plan: Plan) -> list[Discovery]:
    """The results of all collectors; each tries its logins one after the other."""
    work = []
    for each in plan.collectors:
        options = plan.options.get(each.name)
        logins = plan.logins[each.name]
        work.append(_discover(address, each, options, logins, plan.budget_s))
    return await asyncio.gather(*work)


async def _discover(
    address: str, collector: Any, options: Any, logins: Sequence[Login], budget_s: float
) -> Discovery:
    name = collector.name
    if options is None:
        return Discovery(name, reason="some of its options must be given", silent=True)

    reason = "no credential of a kind it takes was named"
    silent = True
    for login in logins:
        try:
            found = await _suggestions(address, collector, options, login.credential, budget_s)
        except errors.DeviceError as error:
            reason = str(error)
            silent = isinstance(error, _Silent)
            continue
        silent = False
        if found:
            return Discovery(name, [replace(each, credential=login.name) for each in found])
        reason = "it suggests nothing"

    return Discovery(name, reason=reason, silent=silent)


async def _suggestions(
    address: str, collector: Any, options: Any, credential: Credential | None, budget_s: float
) -> list[Suggested]:
    """The collector's suggestions within the time. Raises only DeviceError, without secrets."""
    from poller.collectors import poll_runner
    from poller.collectors.api import Poll
    from poller.collectors.memory import answer_budget

    deadline = asyncio.get_running_loop().time() + budget_s
    poll = Poll(0, address, address, options, credential, deadline)
    finding = asyncio.create_task(_find(collector, poll))
    _, late = await asyncio.wait([finding], timeout=budget_s)

    if late:
        finding.cancel()
        raise _Silent(f"no answer within {budget_s:g} s")

    try:
        return finding.result()
    except errors.DeviceError as error:
        message = poll_runner.scrub(error.message, credential)
        cause = poll_runner.scrub(error.cause, credential)
        hint = poll_runner.scrub(error.hint, credential)
        kind = _Silent if isinstance(error, _SILENCES) else errors.DeviceError
        raise kind(message, cause, hint) from None
    finally:
        answer_budget.shared.release(poll)


async def _find(collector: Any, poll: Poll) -> list[Suggested]:
    """The collector's first suggestions. Raises only DeviceError."""
    from poller.collectors.api import Suggestion

    finder: Discovers = collector

    found: list[Suggested] = []
    try:
        async for each in finder.discover(poll):
            if not isinstance(each, Suggestion):
                raise TypeError(f"it suggests a {type(each).__name__}, not an api.Suggestion")
            options = json.loads(json.dumps(dict(each.options)))
            found.append(Suggested(collector.name, options, str(each.reason)))
            if len(found) == MAXIMUM:
                break
    except errors.DeviceError:
        raise
    except BaseException as error:  # noqa: BLE001  the door to a plugin, which may raise SystemExit
        text = plugins.error_text(error)
        raise errors.CollectorCrashed(f"collector {collector.name} crashed", cause=text) from None

    return found
