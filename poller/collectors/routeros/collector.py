"""One RouterOS poll, top to bottom: connect, log in, print each family, close, hand over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar

from poller.collectors import api
from poller.collectors.credentials import Credential, Login
from poller.collectors.routeros import client, families, tls
from poller.collectors.routeros.families import FAMILIES, Family
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.routeros.shapes import Row, Shapes

#: We stop this long before the platform's deadline, so that what was read can still be handed over.
_HAND_OVER_S = 0.05

Answers = list[tuple[Family, Sequence[Row]]]


class RouterOsCollector:
    """MikroTik RouterOS 6 and 7 over the API, plain or TLS."""

    name: ClassVar[str] = "routeros"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = RouterOsOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Login,)

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        options: RouterOsOptions = poll.options
        answers: Answers = []
        failures: list[api.PartFailed] = []
        await _read(poll, options, answers, failures)
        shapes: Shapes = poll.memory.setdefault("routeros", Shapes())
        readings = shapes.read(answers)
        if readings is not None:
            yield readings
        elif not failures:
            raise api.DeviceUnsupported(f"the router has nothing of {', '.join(options.families)}")
        for failure in failures:
            yield failure

    def help_texts(self, options: Any) -> Mapping[str, str]:
        texts: dict[str, str] = {}
        for name in options.families:
            texts.update(families.help_texts(FAMILIES[name]))
        return texts


async def _read(poll: api.Poll, options: RouterOsOptions, answers: Answers, failures: list[api.PartFailed]) -> None:
    """Fills both lists. Raises when there was no session; later trouble costs only the families after it."""
    login = _login(poll)
    context = tls.context(options.ca_file, options.insecure) if options.tls else None
    where = f"{poll.address} port {options.effective_port}"
    async with _deadline(poll, f"no connection to {where}"):
        router = await client.connect(poll.address, options.effective_port, context)
    healthy = False
    try:
        async with _deadline(poll, f"{where} accepted the connection and did not answer the login"):
            await router.log_in(login.username, login.password.get_secret_value())
        healthy = await _print_all(poll, options, router, answers, failures)
    finally:
        await router.close(politely=healthy)


async def _print_all(
    poll: api.Poll,
    options: RouterOsOptions,
    router: client.Router,
    answers: Answers,
    failures: list[api.PartFailed],
) -> bool:
    """Is the connection still in step with the router at the end?"""
    for name in options.families:
        family = FAMILIES[name]
        try:
            async with _deadline(poll, f"no complete answer to {family.path}/print"):
                answers.append((family, await router.print(family.path, family.proplist())))
        except (api.DeviceUnsupported, api.DeviceAuthFailed) as error:  # it said no: the session goes on
            failures.append(api.PartFailed(name, error))
        except api.DeviceError as error:
            failures.append(api.PartFailed(name, error))
            return False
    return True


@contextlib.asynccontextmanager
async def _deadline(poll: api.Poll, text: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(poll.deadline - _HAND_OVER_S):
            yield
    except TimeoutError:
        raise api.DeviceTimeout(text, cause="the time of the poll is up") from None


def _login(poll: api.Poll) -> Login:
    if isinstance(poll.credential, Login):
        return poll.credential
    raise api.DeviceAuthFailed("no RouterOS credential", cause="the target and its device have none of kind login")
