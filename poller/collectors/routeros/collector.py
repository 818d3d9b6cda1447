"""One RouterOS poll, top to bottom.

The collector takes a session from the pool, or connects and logs in. It reads the families that
are due, menu by menu, and turns the rows into readings. A failed family makes the poll partial. A
family that ends the connection repeatedly pauses, so that the other families are read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from poller.collectors import api, tls
from poller.collectors.credentials import Credential, Login
from poller.collectors.memory import answer_budget
from poller.collectors.memory.answer_budget import Hold
from poller.collectors.routeros import api_client, families
from poller.collectors.routeros.api_client import ApiClient
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.family_reader import CommandCache, FamilyReader
from poller.collectors.routeros.options import (
    PLAIN_PORT_HINT,
    RouterOsOptions,
    is_plain_port,
)
from poller.collectors.routeros.router_memory import RouterMemory
from poller.collectors.tls import Trust

#: The poll stops reading this long before the platform's deadline, to yield its readings in time:
#: a minimum, an addition per row, and a maximum share of the poll.
_REPORT_S = 0.05
_REPORT_ROW_S = 150e-6
_REPORT_SHARE = 0.25

#: A family whose read starts within this share of the poll is blamed for a timeout.
_FAIR_SHARE = 0.25


class RouterOsCollector:
    """Polls MikroTik RouterOS 6 and 7 over the API, plain or with TLS."""

    name: ClassVar[str] = "routeros"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = RouterOsOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Login,)
    clear_secrets: ClassVar[Mapping[str, Any]] = {"tls": False}

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        memory: RouterMemory = poll.memory.setdefault("routeros", RouterMemory())
        router_poll = _RouterPoll(poll, memory)
        reader = router_poll.reader
        try:
            await poll.session(self, router_poll.read)
        except api.DeviceError as error:
            if not reader.current:  # no session was open
                raise
            reader.failures.append(api.PartFailed(reader.current, error))
        yield api.Traffic(router_poll.sent, answered_mono=reader.answered_mono)

        standing = memory.standing_failures(router_poll.skipped, router_poll.now)
        failures = reader.failures + standing
        present = memory.presence(router_poll.families, router_poll.now)
        if not failures and not any(present.values()):
            memory.missing.clear()  # the next poll reads all menus: a person may fix this
            raise api.DeviceUnsupported(
                f"the router has nothing of {', '.join(poll.options.families)}"
            )
        if reader.tables or not failures or router_poll.is_partial_success():
            yield await memory.series.readings(reader.tables, present)
        for failure in failures:
            yield failure

    def session_key(self, poll: api.Poll) -> Hashable:
        options: RouterOsOptions = poll.options
        return (options.effective_port, options.trust)

    async def open_session(self, poll: api.Poll) -> ApiClient:
        login = _login(poll)
        options: RouterOsOptions = poll.options
        router = f"{poll.address} port {options.effective_port}"
        hint = PLAIN_PORT_HINT if is_plain_port(options) else ""
        async with _time_limit(poll, f"no connection to {router}", hint=hint):
            client = await _connect(poll.address, options)
        try:
            if options.trust is not None:
                _check_pin(options.trust, client.certificate(), router)
            text = f"{router} accepted the connection and did not answer the login"
            async with _time_limit(poll, text):
                password = login.password.get_secret_value()
                await client.log_in(login.username, password, _hold(poll))
        except BaseException:
            await client.close(politely=False)
            raise
        return client

    async def close_session(self, session: ApiClient, *, politely: bool) -> None:
        await session.close(politely=politely)

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        """Suggest a target if a router at the address accepts the login."""
        found = await poll.session(self, partial(_read_resource, hold=_hold(poll)))
        version = found.get("version", "of an unknown version")
        board = found.get("board-name", "unknown hardware")
        options = poll.options.model_dump(mode="json", exclude_unset=True)
        name = found.get("name", "")
        facts = {"identity": name, "RouterOS": version, "board": board}
        yield api.Suggestion(options, f"RouterOS {version} on {board}", name, facts)

    def check_options(self, options: Any) -> None:
        if options.trust is not None:
            options.trust.check_files()

    def cautions(self, options: Any) -> Iterator[str]:
        if not options.uses_tls:
            yield (
                "tls=false sends the password in clear: enable api-ssl on the router, "
                "then leave tls=false out"
            )
        elif is_plain_port(options):
            yield PLAIN_PORT_HINT
        elif not (options.checks_certificate or options.insecure):
            yield (
                "the router's certificate is not checked: give ca_file, fingerprint or tls=true; "
                "insecure=true accepts that"
            )

    def help_texts(self, options: Any) -> Mapping[str, str]:
        texts = {families.PRESENT: families.PRESENT_HELP}
        for name in options.families:
            texts |= FAMILIES[name].help_texts()
        return texts


class _RouterPoll:
    """One poll of a router: the families that are due, and their reader."""

    def __init__(self, poll: api.Poll, memory: RouterMemory) -> None:
        options: RouterOsOptions = poll.options
        self.families = [FAMILIES[name] for name in options.families]
        self.now = asyncio.get_running_loop().time()
        self._due = memory.due(self.families, options.every, self.now)
        self.skipped = [family for family in self.families if family not in self._due]
        self.sent = 0  # sentences

        left_s = poll.deadline - self.now
        selected = {"address_lists": options.address_lists}
        fair_until = self.now + left_s * _FAIR_SHARE
        self.reader = FamilyReader(memory, selected, self.now, fair_until)
        self._poll = poll
        self._memory = memory
        self._max_report_s = max(_REPORT_S, left_s * _REPORT_SHARE)

    async def read(self, client: ApiClient) -> None:
        """Read the families that are due. Raises the DeviceError that cut the connection."""
        client.begin_poll(_hold(self._poll))
        try:
            await self.reader.read(CommandCache(client, self._time_limit), self._due)
        except api.SessionLost:
            self.reader.current = ""
            raise
        finally:
            self.sent += client.sent

    def is_partial_success(self) -> bool:
        """Return whether a poll without rows is partial and not failed.

        The router must reply, and an earlier poll must have read one of the families.
        """
        return self.reader.router_replies and self._memory.any_healthy(self.families)

    def _time_limit(self, text: str, rows: int) -> contextlib.AbstractAsyncContextManager[None]:
        report_s = min(_REPORT_S + rows * _REPORT_ROW_S, self._max_report_s)
        return _time_limit(self._poll, text, report_s)


def _hold(poll: api.Poll) -> Hold:
    """Charge the replies to the budget of the worker."""
    return partial(answer_budget.shared.add, poll)


async def _read_resource(client: ApiClient, hold: Hold) -> dict[str, str]:
    """Return version, board and identity of a router."""
    client.begin_poll(hold)
    resource = await client.print("/system/resource", "version,board-name")
    identity = await client.print("/system/identity", "name")
    return {key: value for row in (*identity, *resource) for key, value in row.items()}


async def _connect(address: str, options: RouterOsOptions) -> ApiClient:
    trust = options.trust
    if trust is None:
        return await api_client.connect(address, options.effective_port, None)
    context = trust.context(anonymous=True)
    return await api_client.connect(address, options.effective_port, context, trust.server_name)


def _check_pin(trust: Trust, certificate: bytes | None, router: str) -> None:
    """Compare the certificate with the pinned one, before anything is sent."""
    if not trust.accepts(certificate):
        fingerprint = tls.fingerprint_of(certificate)
        raise api.DeviceProtocolError(
            f"{router} has another certificate than the pinned one; nothing was sent to it",
            cause=f"its SHA-256 is {fingerprint}, not {trust.fingerprint}",
            hint=(
                "if its certificate was renewed, set the new fingerprint; "
                "else another host may be intercepting the connection"
            ),
        )


@contextlib.asynccontextmanager
async def _time_limit(
    poll: api.Poll, text: str, report_s: float = _REPORT_S, hint: str = ""
) -> AsyncIterator[None]:
    """Raise DeviceTimeout with this text shortly before the deadline of the poll."""
    try:
        async with asyncio.timeout_at(poll.deadline - report_s):
            yield
    except TimeoutError:
        raise api.DeviceTimeout(text, cause="the time of the poll is up", hint=hint) from None


def _login(poll: api.Poll) -> Login:
    if isinstance(poll.credential, Login):
        return poll.credential
    raise api.DeviceAuthFailed(
        "no RouterOS credential", cause="the target and its device have none of kind login"
    )
