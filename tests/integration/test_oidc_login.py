"""Log-ins by OpenID Connect, against npm's `oidc-provider` in a process of its own."""

from __future__ import annotations

import hashlib
import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from poller.bootstrap import Services
from poller.db.access import audit_rows, session_rows
from poller.db.access.audit_rows import AuditQuery
from tests.conftest import _free_port, missing, wait_until
from tests.integration import access_sites
from tests.integration.access_sites import BROWSER, Site, log_in

SOURCE = Path(__file__).parents[1] / "oidc"
CALLBACK = "http://127.0.0.1/login/provider/callback"
SECRET = "a secret: of the client+"
MOST_STEPS = 10


def _installed() -> Path:
    """The directory of the provider, installed once for each lock file."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing("node and npm are not installed")
    lock = (SOURCE / "package-lock.json").read_bytes()
    name = f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:12]}"
    directory = Path(sys.prefix) / name
    if not directory.exists():
        work = directory.with_name(f"{name}.{_free_port()}")
        shutil.copytree(SOURCE, work)
        command = [npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=100)
        if done.returncode:
            shutil.rmtree(work)
            missing(f"npm cannot install the provider: {done.stderr[-500:]}")
        try:
            work.rename(directory)
        except OSError:
            shutil.rmtree(work)  # another process was faster
    return directory


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A running provider."""
    directory = _installed()
    url = f"http://127.0.0.1:{_free_port()}"
    command = ["node", str(directory / "provider.js"), url.rpartition(":")[2], CALLBACK]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(
            lambda: httpx.get(f"{url}/.well-known/openid-configuration").is_success,
            "the provider",
            process,
        )
        yield url
        process.terminate()


@pytest.fixture
def site(services: Services, monkeypatch: pytest.MonkeyPatch, issuer: str) -> Site:
    return access_sites.make(
        services,
        monkeypatch,
        web_bind="0.0.0.0",
        oidc_issuer=issuer,
        oidc_client_id="poller",
        oidc_client_secret=SECRET,
    )


def at_provider(url: str, name: str) -> str:
    """Log in at the provider as a person does, and return the address it sends the browser to."""
    with httpx.Client() as browser:
        for _ in range(MOST_STEPS):
            response = browser.get(url)
            if response.is_success:
                form = re.search(r'action="([^"]+)"', response.text)
                prompt = re.search(r'name="prompt" value="(\w+)"', response.text)
                assert form, response.text
                assert prompt, response.text
                fields = {"prompt": prompt[1], "login": name, "password": "x"}
                response = browser.post(urljoin(url, html.unescape(form[1])), data=fields)
            url = urljoin(url, response.headers["location"])
            if url.startswith(CALLBACK):
                return url
    pytest.fail("the provider did not send the browser back")


def test_a_person_of_the_provider_logs_in_with_the_role_of_its_groups(site: Site) -> None:
    """The way is: login page, provider, page; the name cannot be a local user's."""
    browser = site.client()
    page = browser.get("/login?next=jobs", headers=BROWSER).text
    assert 'href="login/provider?next=jobs"' in page
    start = browser.get("/login/provider?next=jobs", headers=BROWSER)
    assert start.status_code == 303
    back = at_provider(start.headers["location"], "kim")
    done = browser.get(back.removeprefix("http://127.0.0.1"), headers=BROWSER)
    assert (done.status_code, done.headers["location"]) == (303, "./../../jobs"), done.text
    who = browser.get("/api/v1/session").json()
    assert (who["name"], who["kind"]) == ("oidc:kim", "user")
    assert who["scopes"] == ["scrape", "read", "operate", "inventory"]
    [session] = session_rows.listing(site.services.engine)
    assert (session.source, session.name) == ("oidc", "oidc:kim")
    [row] = audit_rows.listing(site.services.engine, AuditQuery(action="session.login"))
    assert row.after == {"source": "oidc", "role": "operator"}


def test_a_person_without_a_group_of_ours_is_refused(site: Site) -> None:
    """The page names the person and the setting."""
    browser = site.client()
    start = browser.get("/login/provider", headers=BROWSER)
    back = at_provider(start.headers["location"], "eve")
    done = browser.get(back.removeprefix("http://127.0.0.1"), headers=BROWSER)
    assert done.status_code == 403
    assert "POLLER_GROUP_ROLES" in done.text
    assert 'action="../../login"' in done.text
    assert session_rows.listing(site.services.engine) == []


def test_an_answer_is_for_the_browser_that_asked_and_for_once(site: Site) -> None:
    """Another browser, another state and a second use of the code are refused."""
    browser, thief = site.client(), site.client()
    start = browser.get("/login/provider", headers=BROWSER)
    path = at_provider(start.headers["location"], "kim").removeprefix("http://127.0.0.1")
    assert thief.get(path, headers=BROWSER).status_code == 401
    thief.get("/login/provider", headers=BROWSER)
    assert thief.get(path, headers=BROWSER).status_code == 401
    cookie = browser.cookies["poller_provider"]
    assert browser.get(path, headers=BROWSER).status_code == 303
    browser.cookies.clear()
    browser.cookies.set("poller_provider", cookie)
    again = browser.get(path, headers=BROWSER)
    assert again.status_code == 401
    assert "did not log you in" in again.text
    assert SECRET not in again.text


def test_a_session_of_the_provider_ends_when_the_provider_is_no_longer_trusted(
    site: Site, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the setting nobody could end the session at the provider."""
    browser = site.client()
    start = browser.get("/login/provider", headers=BROWSER)
    back = at_provider(start.headers["location"], "kim")
    browser.get(back.removeprefix("http://127.0.0.1"), headers=BROWSER)
    value = browser.cookies["poller_session"]
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.delenv(f"POLLER_OIDC_{name}")
    other = access_sites.make(services, monkeypatch).client()
    other.cookies.set("poller_session", value)
    assert other.get("/api/overview").status_code == 401
    assert urlsplit(back).path == "/login/provider/callback"


def test_a_provider_that_is_away_leaves_the_local_login(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so at once, and a local user logs in as before."""
    site = access_sites.make(
        services,
        monkeypatch,
        web_bind="0.0.0.0",
        oidc_issuer=f"http://127.0.0.1:{_free_port()}",
        oidc_client_id="poller",
        oidc_client_secret=SECRET,
    )
    site.user()
    browser = site.client()
    start = browser.get("/login/provider?next=jobs", headers=BROWSER)
    assert start.status_code == 503
    assert "The login provider does not respond" in start.text
    assert log_in(browser, next="jobs").headers["location"] == "./jobs"
