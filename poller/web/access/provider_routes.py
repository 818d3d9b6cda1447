"""Log-ins by OpenID Connect: the way to the provider, and the way back.

What a login must remember meanwhile is in a cookie of the browser that began it, so that any web
process can end it, and no other browser.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.domain.access import group_roles
from poller.domain.access.scopes import Role
from poller.security import oidc_provider
from poller.security.oidc_provider import Client, Person, Provider
from poller.service.access import browser_logins
from poller.settings import Settings
from poller.web.access import login_routes
from poller.web.access.login_routes import LoginPages
from poller.web.access.request_origin import RequestOrigin

START = "/login/provider"
CALLBACK = "/login/provider/callback"
#: Time to log in at the provider.
LIVES_S = 600
_COOKIE = "poller_provider"
_LARGEST_COOKIE = 4_000
#: Characters of each random text of a login.
_SHORTEST = 43


@dataclass(frozen=True, slots=True)
class Pending:
    """A login that is under way."""

    request: oidc_provider.Request
    after: str


def add(app: FastAPI, pages: LoginPages) -> None:
    """Add the routes, if a provider is configured."""
    settings = pages.services.settings
    if not settings.oidc_issuer:
        return
    provider = Provider(_client(settings))

    @app.get(START)
    async def to_provider(request: Request, next: str = "") -> Response:
        """Send the browser to the provider."""
        origin: RequestOrigin = request.state.origin
        pending = Pending(
            oidc_provider.Request(
                state=secrets.token_urlsafe(32),
                nonce=secrets.token_urlsafe(32),
                verifier=secrets.token_urlsafe(48),
                redirect_uri=_redirect_uri(settings, request, origin),
            ),
            login_routes.local_path(next),
        )
        try:
            url = await pages.in_thread(provider.authorization_url, pending.request)
        except errors.NotLoggedIn as error:
            return await pages.form(request, f"{error}.", 503, pending.after)
        response = RedirectResponse(url, status_code=303)
        _store(response, pending, origin.is_https)
        return response

    @app.get(CALLBACK)
    async def from_provider(request: Request) -> Response:
        """End a login with the answer of the provider."""
        origin: RequestOrigin = request.state.origin
        pending = _load(request, origin.is_https)
        try:
            if pending is None:
                raise errors.NotLoggedIn("the login took too long, or began in another browser")
            answer = dict(request.query_params)
            person = await pages.in_thread(provider.person, pending.request, answer)
            role = _role(person, pages)
        except errors.NotLoggedIn as error:
            response: Response = await pages.form(request, f"{error}.", 401)
        except errors.NotAllowed as error:
            response = await pages.form(request, f"{error}.", 403)
        else:
            login = await pages.in_thread(
                browser_logins.log_in_by_provider,
                pages.services,
                person.name,
                role,
                origin.address,
            )
            response = await pages.begin(request, login, f"../../{pending.after}")
        response.delete_cookie(_name(origin.is_https), path="/", secure=origin.is_https)
        return response


def _client(settings: Settings) -> Client:
    secret = settings.oidc_client_secret
    return Client(
        settings.oidc_issuer,
        settings.oidc_client_id,
        secret.get_secret_value() if secret else "",
        settings.oidc_groups_claim,
    )


def _role(person: Person, pages: LoginPages) -> Role:
    role = group_roles.highest(person.groups, pages.finder.policy.proxies.roles)
    if role is None:
        raise errors.NotAllowed(
            f'"{person.name}" may not use this: none of its groups has a role in POLLER_GROUP_ROLES'
        )
    return role


def _redirect_uri(settings: Settings, request: Request, origin: RequestOrigin) -> str:
    """The address of the callback, by web_url or else by the Host header, which was checked."""
    if settings.web_url.startswith(("http://", "https://")):
        return settings.web_url.rstrip("/") + CALLBACK
    scheme = "https" if origin.is_https else "http"
    return f"{scheme}://{request.headers.get('host', '')}{CALLBACK}"


def _name(is_https: bool) -> str:
    return f"__Host-{_COOKIE}" if is_https else _COOKIE


def _store(response: Response, pending: Pending, is_https: bool) -> None:
    text = json.dumps({**asdict(pending.request), "after": pending.after})
    response.set_cookie(
        _name(is_https),
        text.encode().hex(),
        max_age=LIVES_S,
        path="/",
        secure=is_https,
        httponly=True,
        samesite="lax",  # the provider sends the browser back from another site
    )


def _load(request: Request, is_https: bool) -> Pending | None:
    """The login that this browser began; None without one."""
    text = request.cookies.get(_name(is_https), "")[:_LARGEST_COOKIE]
    try:
        fields = json.loads(bytes.fromhex(text))
        after = login_routes.local_path(fields.pop("after"))
        if any(len(fields[name]) < _SHORTEST for name in ("state", "nonce", "verifier")):
            return None  # this cookie is not ours: an empty text would equal a missing one
        return Pending(oidc_provider.Request(**fields), after)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
