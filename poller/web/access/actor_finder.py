"""Finds the actor of a request: a token, a user whom a proxy names, a session, or nobody.

On loopback everybody is the local actor with all rights until a person can log in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import Headers

from poller import errors
from poller.bootstrap import Services
from poller.db.access import session_rows, token_rows
from poller.db.access.session_rows import StoredSession
from poller.db.access.token_rows import StoredToken
from poller.domain.access import scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.observability import logs
from poller.security import token_values
from poller.service.access import login_demand
from poller.service.access.login_demand import LoginMeans
from poller.web.access import session_cookies
from poller.web.access.access_policy import AccessPolicy
from poller.web.access.recent_rows import RecentRows
from poller.web.access.request_origin import RequestOrigin

log = logs.get(__name__)

#: The last use of a token or session is stored at most this often.
MARK_EVERY_S = 60.0
_MOST_MARKS = 10_000
_BEARER = "bearer "
_HINT = "send `Authorization: Bearer TOKEN`; `poller token add` makes a token"


@dataclass(frozen=True, slots=True)
class Visit:
    """The actor of one request; None for nobody. `session_value` is that of its cookie."""

    actor: Actor | None
    session_value: str = ""


class ActorFinder:
    """Finds actors with the rows of the last seconds."""

    def __init__(self, services: Services, policy: AccessPolicy) -> None:
        self._services = services
        self.policy = policy
        engine = services.engine
        self._tokens = RecentRows(partial(token_rows.valid, engine))
        self._sessions = RecentRows(self._load_session)
        self._means = RecentRows(self._load_means)
        self._marks: dict[str, float] = {}
        self._marking: set[asyncio.Future[None]] = set()

    async def find(self, headers: Headers, origin: RequestOrigin) -> Visit:
        """Return the actor. Raises NotLoggedIn, NotAllowed, StoreError.

        A token that is sent decides alone: a wrong one is refused, whatever else was sent.
        """
        token = _bearer(headers)
        if token is not None:
            return Visit(await self._of_token(token, origin))
        user_header = self.policy.proxies.user_header
        if user_header and user_header in headers and origin.is_from_proxy:
            return Visit(self._of_proxy(headers, origin))
        value = session_cookies.value(headers, origin.is_https)
        if value:
            actor = await self._of_session(value, origin)
            if actor is not None:
                return Visit(actor, value)
        is_passed_on = origin.is_forwarded or origin.is_from_proxy
        if not is_passed_on and not await self.is_demanded():
            return Visit(Actor("local", ActorKind.LOCAL, origin.address))
        return Visit(None)

    def still_admits(self, headers: Headers, actor: Actor) -> Callable[[], bool] | None:
        """Return a check that the same request would find the same actor, from rows at hand.

        None for an actor that only a whole look at a request finds: a session, a proxy's user.
        """
        if actor.kind is ActorKind.TOKEN:
            digest = token_values.digest(_bearer(headers) or "")
            return partial(self._is_token_recent, digest, actor)
        if actor.kind is ActorKind.LOCAL:
            return self._is_login_unneeded
        return None

    def _is_token_recent(self, digest: str, actor: Actor) -> bool:
        row = self._tokens.kept(digest)
        if row is None or _is_over(row.expires_ms):
            return False
        self._mark(digest, row.last_used_ms, partial(_mark_token, self._services, row))
        return scopes.granted(row.scopes) == actor.scopes and row.site == actor.site

    def _is_login_unneeded(self) -> bool:
        found = self._means.kept("")
        return found is not None and not login_demand.is_demanded(self._services.settings, found)

    async def is_demanded(self) -> bool:
        """Whether a request without a login is refused; True while that is not known."""
        try:
            found = await self._means.get("")
        except errors.StoreError:
            return True
        return login_demand.is_demanded(self._services.settings, found)

    async def means(self) -> LoginMeans:
        """Return the ways to log in. Raises StoreError."""
        return await self._means.get("")

    def clear(self) -> None:
        """Forget all rows: this process changed users, tokens or sessions."""
        for rows in (self._tokens, self._sessions, self._means):
            rows.clear()

    async def _of_token(self, value: str, origin: RequestOrigin) -> Actor:
        row = None
        digest = token_values.digest(value)
        if token_values.is_value(value):
            row = await self._tokens.get(digest)
        if row is None or _is_over(row.expires_ms):
            raise errors.NotLoggedIn("the token is not valid", hint=_HINT)
        self._mark(digest, row.last_used_ms, partial(_mark_token, self._services, row))
        granted = scopes.granted(row.scopes)
        return Actor(row.name, ActorKind.TOKEN, origin.address, granted, row.site)

    async def _of_session(self, value: str, origin: RequestOrigin) -> Actor | None:
        digest = token_values.digest(value)
        row = await self._sessions.get(digest)
        if row is None or _is_over(row.expires_ms):
            return None
        if row.source == session_rows.OIDC and not self.policy.has_provider:
            return None
        mark = partial(session_rows.mark_seen, self._services.engine, digest)
        self._mark(digest, row.seen_ms, mark)
        return Actor(row.name, ActorKind.USER, origin.address, scopes.of_role(row.role))

    def _of_proxy(self, headers: Headers, origin: RequestOrigin) -> Actor:
        proxies = self.policy.proxies
        names = headers.getlist(proxies.user_header)
        return proxies.actor(names, headers.getlist(proxies.groups_header), origin.address)

    def _load_session(self, digest: str) -> StoredSession | None:
        return session_rows.valid(self._services.engine, digest, self.policy.idle_ms)

    def _load_means(self, _key: str) -> LoginMeans:
        return login_demand.means(self._services)

    def _mark(self, digest: str, stored_ms: int | None, mark: Callable[[], None]) -> None:
        """Store the last use beside the request, at most once a minute."""
        now_mono = time.monotonic()
        if now_mono < self._marks.get(digest, 0.0):
            return
        if len(self._marks) >= _MOST_MARKS:
            self._marks.clear()
        self._marks[digest] = now_mono + MARK_EVERY_S
        if stored_ms is not None and time.time() * 1000 < stored_ms + MARK_EVERY_S * 1000:
            return
        loop = asyncio.get_running_loop()
        marking = loop.run_in_executor(None, _mark_quietly, mark)
        self._marking.add(marking)
        marking.add_done_callback(self._marking.discard)


def _mark_token(services: Services, row: StoredToken) -> None:
    token_rows.mark_used(services.engine, row.id)


def _mark_quietly(mark: Callable[[], None]) -> None:
    try:
        mark()
    except errors.StoreError as error:
        log.warning("last_use_not_stored", error=str(error))


def _bearer(headers: Headers) -> str | None:
    """Return the token of the header; None without one. Other schemes are for a proxy."""
    found = [each for each in headers.getlist("authorization") if _is_bearer(each)]
    if len(found) > 1:
        raise errors.NotLoggedIn("the request has more than one token", hint="send one")
    return found[0][len(_BEARER) :].strip() if found else None


def _is_bearer(header: str) -> bool:
    return header[: len(_BEARER)].lower() == _BEARER


def _is_over(expires_ms: int | None) -> bool:
    return expires_ms is not None and expires_ms <= time.time() * 1000
