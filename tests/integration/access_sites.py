"""The web application on real stores, with users, tokens, and peers that a test chooses."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Role, Scope
from poller.service.access import api_tokens, user_accounts
from poller.service.access.api_tokens import TokenDraft
from poller.settings import Settings
from poller.web import web_process
from poller.web.routes import create_app

with warnings.catch_warnings():
    # Starlette's test client wants a newer httpx than FastAPI requires.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

KIM = Actor("kim", ActorKind.CLI, "host-1")
PASSWORD = "correct horse battery staple"
BROWSER = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Site": "same-origin"}


class Site:
    """One web process. `client` makes a browser or a program that reaches it from an address."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.app = create_app(web_process.backend_queries(services), services=services)

    def client(self, peer: str = "192.0.2.7", scheme: str = "http", **headers: str) -> TestClient:
        return TestClient(
            self.app,
            base_url=f"{scheme}://127.0.0.1",
            headers=headers,
            client=(peer, 4711),
            follow_redirects=False,
            raise_server_exceptions=False,
        )

    def token(self, *scopes: Scope, name: str = "ci", **more: Any) -> dict[str, str]:
        """The header of a new token."""
        draft = TokenDraft(name, scopes, **more)
        made = api_tokens.add(self.services, KIM, draft)
        return {"Authorization": f"Bearer {made.value}"}

    def user(self, name: str = "lee", role: Role = Role.ADMIN) -> None:
        user_accounts.add(self.services, KIM, name, role, PASSWORD)
        self.forget()

    def forget(self) -> None:
        """Let the application read its rows again, as it does after three seconds."""
        self.app.state.finder.clear()


def make(services: Services, monkeypatch: pytest.MonkeyPatch, **settings: str) -> Site:
    """A web process with settings of its own on the same stores."""
    for name, value in settings.items():
        monkeypatch.setenv(f"POLLER_{name.upper()}", value)
    own = Services(Settings())
    own.__dict__.update(engine=services.engine, redis=services.redis)
    return Site(own)


def log_in(browser: TestClient, name: str = "lee", password: str = PASSWORD, **fields: str) -> Any:
    form = {"name": name, "password": password, **fields}
    return browser.post("/login", data=form, headers=BROWSER)


def browser_of(site: Site, role: Role, **more: Any) -> Any:
    """A browser in which a new user with this role is logged in; the role is the name."""
    site.user(role.value, role)
    browser = site.client(**more, **BROWSER)
    log_in(browser, role.value)
    return browser


def form_token(page: str) -> str:
    found = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', page)
    assert found
    return found[1]
