"""One RouterOS poll, top to bottom: get a session (connect, log in), print each family, hand over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable, Mapping
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Credential, Login
from poller.collectors.routeros import api_client, families, router_discovery
from poller.collectors.routeros.command_cache import Conversation
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.family_reader import Asking
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.routeros.router_memory import Memory

#: We stop this long before the platform's deadline, so that what was read can still be handed over: at least, and for
#: each row, but never more than this share of the poll.
_HAND_OVER_S, _HAND_OVER_ROW_S, _HAND_OVER_SHARE = 0.05, 150e-6, 0.25

#: A family that is asked for within this share of the poll had its chance.
_FAIR_SHARE = 0.25


class RouterOsCollector:
    """MikroTik RouterOS 6 and 7 over the API, plain or TLS."""

    name: ClassVar[str] = "routeros"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = RouterOsOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Login,)

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        memory: Memory = poll.memory.setdefault("routeros", Memory())
        dialogue = _Dialogue(poll, memory)
        asked = dialogue.asking
        try:
            await poll.session(self, dialogue.ask_all)
        except api.DeviceError as error:
            if not asked.at:  # there was no session
                raise
            asked.failures.append(api.PartFailed(asked.at, error))
        yield api.Traffic(dialogue.sent)
        failures = asked.failures + memory.remembered(dialogue.left_out, dialogue.now)
        present = memory.presence(dialogue.wanted, dialogue.now)
        if not failures and not any(present.values()):
            memory.refused.clear()  # somebody will mend that, here or there: the next poll asks again
            raise api.DeviceUnsupported(
                f"the router has nothing of {', '.join(poll.options.families)}"
            )
        # What is only remembered makes no failed poll a partial one, nor does a router that refuses all that is wanted.
        if asked.answers or not failures or (asked.is_there and memory.is_well(dialogue.wanted)):
            yield await memory.shapes.read_in_turns(asked.answers, present)
        for failure in failures:
            yield failure

    def session_key(self, poll: api.Poll) -> Hashable:
        options: RouterOsOptions = poll.options
        return (options.effective_port, options.trust)

    async def open_session(self, poll: api.Poll) -> api_client.Router:
        login, where = _login(poll), f"{poll.address} port {poll.options.effective_port}"
        async with _deadline(poll, f"no connection to {where}"):
            router = await _connect(poll.address, poll.options)
        try:
            if poll.options.trust is not None:
                poll.options.trust.check(router.certificate(), where)
            async with _deadline(
                poll, f"{where} accepted the connection and did not answer the login"
            ):
                await router.log_in(login.username, login.password.get_secret_value())
        except BaseException:
            await router.close(politely=False)
            raise
        return router

    async def close_session(self, session: api_client.Router, *, politely: bool) -> None:
        await session.close(politely=politely)

    def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        return router_discovery.discover(self, poll)

    def check_options(self, options: Any) -> None:
        if options.trust is not None:
            options.trust.context()

    def help_texts(self, options: Any) -> Mapping[str, str]:
        texts = {families.PRESENT: families.PRESENT_HELP}
        for name in options.families:
            texts |= FAMILIES[name].help_texts()
        return texts


class _Dialogue:
    """What is asked of a router in one poll, and what it answers."""

    def __init__(self, poll: api.Poll, memory: Memory) -> None:
        self.wanted = [FAMILIES[name] for name in poll.options.families]
        self.now = asyncio.get_running_loop().time()
        left_s = poll.deadline - self.now
        chosen = {"address_lists": poll.options.address_lists}
        self.asking = Asking(memory, chosen, self.now, self.now + left_s * _FAIR_SHARE)
        self.sent = 0  # sentences
        self._due = memory.due(self.wanted, poll.options.every, self.now)
        self.left_out = [family for family in self.wanted if family not in self._due]
        self._poll = poll
        self._most_hand_over_s = max(_HAND_OVER_S, left_s * _HAND_OVER_SHARE)

    async def ask_all(self, router: api_client.Router) -> None:
        """Raises when the connection is not in step with the router any more."""
        router.begin()
        try:
            await self.asking.read(Conversation(router, self._within), self._due)
        except api.SessionLost:
            self.asking.at = ""
            raise
        finally:
            self.sent += router.sent

    def _within(self, text: str, rows: int) -> contextlib.AbstractAsyncContextManager[None]:
        return _deadline(
            self._poll, text, min(_HAND_OVER_S + rows * _HAND_OVER_ROW_S, self._most_hand_over_s)
        )


async def _connect(address: str, options: RouterOsOptions) -> api_client.Router:
    trust = options.trust
    if trust is None:
        return await api_client.connect(address, options.effective_port, None)
    try:
        context = trust.context()
    except errors.ConfigError as error:
        raise api.OptionsUnusable(error.message, error.cause, error.hint) from None
    return await api_client.connect(address, options.effective_port, context, trust.server_name)


@contextlib.asynccontextmanager
async def _deadline(
    poll: api.Poll, text: str, hand_over_s: float = _HAND_OVER_S
) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(poll.deadline - hand_over_s):
            yield
    except TimeoutError:
        raise api.DeviceTimeout(text, cause="the time of the poll is up") from None


def _login(poll: api.Poll) -> Login:
    if isinstance(poll.credential, Login):
        return poll.credential
    raise api.DeviceAuthFailed(
        "no RouterOS credential", cause="the target and its device have none of kind login"
    )
