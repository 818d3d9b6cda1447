"""Access behind a proxy that names users and addresses."""

from __future__ import annotations

import pytest

from poller.bootstrap import Services
from poller.db.access import session_rows
from tests.integration import access_sites
from tests.integration.access_sites import Site, log_in

EVERYWHERE = "0.0.0.0"


@pytest.fixture
def site(services: Services, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A web process that the network reaches."""
    return access_sites.make(services, monkeypatch, web_bind=EVERYWHERE)


def test_a_trusted_proxy_names_the_user(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups decide about the role; other peers, and two names, are not believed."""
    site = access_sites.make(
        services,
        monkeypatch,
        web_bind=EVERYWHERE,
        trusted_proxies="10.0.0.0/8",
        proxy_user_header="X-Forwarded-User",
        group_roles="noc=viewer,net=operator",
    )
    proxy = site.client("10.1.2.3", **{"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.9.9.9"})
    operator = {"X-Forwarded-User": "kim", "X-Forwarded-Groups": "noc, net"}
    who = proxy.get("/api/v1/session", headers=operator).json()
    assert (who["name"], who["kind"], who["scopes"]) == (
        "kim",
        "proxy",
        ["scrape", "read", "operate", "inventory"],
    )
    stranger = {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "sales"}
    assert proxy.get("/api/overview", headers=stranger).status_code == 403
    assert proxy.get("/api/overview").status_code == 401
    smuggled = [("X-Forwarded-User", "kim"), ("X-Forwarded-User", "root")]
    assert proxy.get("/api/overview", headers=smuggled).status_code == 401  # type: ignore[arg-type]
    added = [*operator.items(), ("X-Forwarded-Groups", "noc")]  # the proxy added, not replaced
    assert proxy.get("/api/overview", headers=added).status_code == 401  # type: ignore[arg-type]
    outside = site.client("192.0.2.7")
    assert outside.get("/api/overview", headers=operator).status_code == 401
    form = operator | {"Content-Type": "text/plain"}
    assert proxy.patch("/api/v1/sites/x", content=b"{}", headers=form).status_code == 403


def test_the_address_behind_a_proxy_is_the_last_one_that_it_saw(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client cannot choose the address that is limited and recorded."""
    site = access_sites.make(
        services, monkeypatch, web_bind=EVERYWHERE, trusted_proxies="10.0.0.1,10.9.9.9"
    )
    site.user()
    spoofed = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.9.9.9"}
    log_in(site.client("10.0.0.1", **spoofed, **{"X-Forwarded-Proto": "https"}))
    log_in(site.client("192.0.2.7", **spoofed))
    log_in(site.client("10.0.0.1", **{"X-Forwarded-For": "nonsense"}))
    found = session_rows.listing(services.engine)
    assert {each.address for each in found} == {"203.0.113.7", "192.0.2.7", "10.0.0.1"}


def test_nobody_behind_a_proxy_is_local(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client can let some proxies drop the headers that show them (`Connection: ...`)."""
    site = access_sites.make(services, monkeypatch, trusted_proxies="127.0.0.1")
    assert site.client("127.0.0.1").get("/api/overview").status_code == 401
    assert site.client("127.0.0.2").get("/api/overview").status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({"X-Forwarded-Proto": "https"}, True),
        ({"X-Forwarded-Proto": "https, http"}, True),
        ({"X-Forwarded-Proto": "http"}, False),
        ({}, True),
    ],
)
def test_a_cookie_behind_a_proxy_is_secure_if_people_use_https(
    services: Services, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], is_secure: bool
) -> None:
    """The header of a trusted proxy says so, or else the address of the settings."""
    site = access_sites.make(
        services,
        monkeypatch,
        web_bind=EVERYWHERE,
        trusted_proxies="10.0.0.1",
        web_url="https://poller.example.org",
    )
    site.user()
    cookie = log_in(site.client("10.0.0.1", **headers)).headers["set-cookie"]
    assert cookie.startswith("__Host-" if is_secure else "poller_session=")
    assert ("Secure" in cookie) is is_secure
    assert "HttpOnly" in cookie
    direct = log_in(site.client("192.0.2.7", **headers)).headers["set-cookie"]
    assert direct.startswith("poller_session=")
