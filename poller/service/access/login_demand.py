"""Whether the web role asks for a login, and whether it has one to ask for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db import engine as sql
from poller.db.access import token_rows, user_rows
from poller.observability import logs
from poller.security import network_exposure

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.settings import Settings

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class LoginMeans:
    """The ways to be recognised that exist."""

    users: bool
    tokens: bool
    provider: bool  # OpenID Connect
    proxy: bool  # a trusted proxy names the user

    @property
    def any(self) -> bool:
        return self.users or self.tokens or self.provider or self.proxy

    @property
    def for_people(self) -> bool:
        """Whether a person can log in, so that a page asks for it."""
        return self.users or self.provider or self.proxy


def means(services: Services) -> LoginMeans:
    """Return the ways to log in. No database or no tables: no users. Raises StoreError."""
    settings = services.settings
    engine = services.engine
    users = tokens = False
    if not sql.is_missing(engine):
        with suppress(errors.SchemaMismatch):
            users = user_rows.any_enabled(engine)
            tokens = token_rows.any_valid(engine)
    return LoginMeans(users, tokens, bool(settings.oidc_issuer), bool(settings.proxy_user_header))


def is_demanded(settings: Settings, found: LoginMeans) -> bool:
    """Whether a request without a login or token is refused.

    On loopback nobody has to log in until a person can. A token alone, such as one of a scraper,
    changes nothing there.
    """
    return found.for_people or not network_exposure.is_loopback(settings.web_bind)


def check_exposure(services: Services) -> None:
    """Refuse a page beyond loopback that nobody could log in to. Raises InvalidSetting.

    While the database is away the page may start: it refuses every request until it knows.
    """
    bind = services.settings.web_bind
    if network_exposure.is_loopback(bind):
        return
    try:
        has_login = means(services).any
    except errors.StoreError as error:
        log.warning("logins_unknown", error=str(error))
        return
    network_exposure.check_page(bind, has_login)
