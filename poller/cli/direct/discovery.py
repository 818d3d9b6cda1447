"""Asks collectors in this process for the targets that suit an address, all at the same time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from poller import errors, plugins

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Discovers, Poll

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


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of one collector: its suggestions, or the reason why there are none."""

    collector: str
    suggestions: Sequence[Suggested] = field(default=())
    reason: str = ""


async def discover_all(
    address: str,
    collectors: Sequence[Collector],
    options: Mapping[str, Any],
    logins: Mapping[str, Sequence[Login]],
    budget_s: float,
) -> list[Discovery]:
    """The results of all collectors; each tries its logins one after the other."""
    work = []
    for each in collectors:
        its_options = options.get(each.name)
        its_logins = logins[each.name]
        work.append(_discover(address, each, its_options, its_logins, budget_s))
    return await asyncio.gather(*work)


async def _discover(
    address: str, collector: Any, options: Any, logins: Sequence[Login], budget_s: float
) -> Discovery:
    name = collector.name
    if options is None:
        return Discovery(name, reason="some of its options must be given")

    reason = "no credential of a kind it takes was named"
    for login in logins:
        try:
            found = await _suggestions(address, collector, options, login.credential, budget_s)
        except errors.DeviceError as error:
            reason = str(error)
            continue
        if found:
            return Discovery(name, [replace(each, credential=login.name) for each in found])
        reason = "it suggests nothing"

    return Discovery(name, reason=reason)


async def _suggestions(
    address: str, collector: Any, options: Any, credential: Credential | None, budget_s: float
) -> list[Suggested]:
    """The collector's suggestions within the time. Raises only DeviceError, without secrets."""
    from poller.collectors import poll_runner
    from poller.collectors.api import Poll

    deadline = asyncio.get_running_loop().time() + budget_s
    poll = Poll(0, address, address, options, credential, deadline)
    finding = asyncio.create_task(_find(collector, poll))
    _, late = await asyncio.wait([finding], timeout=budget_s)

    if late:
        finding.cancel()
        raise errors.DeviceTimeout(f"no answer within {budget_s:g} s")

    try:
        return finding.result()
    except errors.DeviceError as error:
        message = poll_runner.scrub(error.message, credential)
        cause = poll_runner.scrub(error.cause, credential)
        hint = poll_runner.scrub(error.hint, credential)
        raise errors.DeviceError(message, cause, hint) from None


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
