"""One RouterOS poll, top to bottom: get a session (connect, log in), print each family, hand over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Credential, Login
from poller.collectors.routeros import client, families
from poller.collectors.routeros.families import FAMILIES, Family
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.routeros.shapes import Row, Shapes

#: We stop this long before the platform's deadline, so that what was read can still be handed over.
_HAND_OVER_S = 0.05


class RouterOsCollector:
    """MikroTik RouterOS 6 and 7 over the API, plain or TLS."""

    name: ClassVar[str] = "routeros"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = RouterOsOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Login,)

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        dialogue = _Dialogue(poll)
        try:
            await poll.session(self, dialogue.print_all)
        except api.DeviceError as error:
            if not dialogue.asking:  # there was no session
                raise
            dialogue.failures.append(api.PartFailed(dialogue.asking, error))
        yield api.Traffic(dialogue.sent)
        shapes: Shapes = poll.memory.setdefault("routeros", Shapes())
        readings = shapes.read(dialogue.answers)
        if readings is not None:
            yield readings
        elif not dialogue.failures:
            raise api.DeviceUnsupported(f"the router has nothing of {', '.join(poll.options.families)}")
        for failure in dialogue.failures:
            yield failure

    def session_key(self, poll: api.Poll) -> Hashable:
        options: RouterOsOptions = poll.options
        return (options.effective_port, options.trust)

    async def open_session(self, poll: api.Poll) -> client.Router:
        login, where = _login(poll), f"{poll.address} port {poll.options.effective_port}"
        async with _deadline(poll, f"no connection to {where}"):
            router = await _connect(poll.address, poll.options)
        try:
            if poll.options.trust is not None:
                poll.options.trust.check(router.certificate(), where)
            async with _deadline(poll, f"{where} accepted the connection and did not answer the login"):
                await router.log_in(login.username, login.password.get_secret_value())
        except BaseException:
            await router.close(politely=False)
            raise
        return router

    async def close_session(self, session: client.Router, *, politely: bool) -> None:
        await session.close(politely=politely)

    def check_options(self, options: Any) -> None:
        if options.trust is not None:
            options.trust.context()

    def help_texts(self, options: Any) -> Mapping[str, str]:
        texts: dict[str, str] = {}
        for name in options.families:
            texts.update(families.help_texts(FAMILIES[name]))
        return texts


class _Dialogue:
    """What is asked of a router in one poll, and what it answers. Trouble costs only the families after it."""

    def __init__(self, poll: api.Poll) -> None:
        self.answers: list[tuple[Family, Sequence[Row]]] = []
        self.failures: list[api.PartFailed] = []
        self.asking = ""  # the family
        self.sent = 0  # sentences
        self._poll = poll

    async def print_all(self, router: client.Router) -> None:
        """Raises when the connection is not in step with the router any more."""
        router.begin()
        try:
            for name in self._poll.options.families:
                self.asking = name
                await self._try(router, name)
        except api.SessionLost:
            self.asking = ""
            raise
        finally:
            self.sent += router.sent

    async def _try(self, router: client.Router, name: str) -> None:
        family = FAMILIES[name]
        try:
            async with _deadline(self._poll, f"no complete answer to {family.path}/print"):
                self.answers.append((family, await router.print(family.path, family.proplist())))
        except client.REFUSALS as error:  # it said no: the session goes on
            self.failures.append(api.PartFailed(name, error))


async def _connect(address: str, options: RouterOsOptions) -> client.Router:
    trust = options.trust
    if trust is None:
        return await client.connect(address, options.effective_port, None)
    try:
        context = trust.context()
    except errors.ConfigError as error:
        raise api.OptionsUnusable(error.message, error.cause, error.hint) from None
    return await client.connect(address, options.effective_port, context, trust.server_name)


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
