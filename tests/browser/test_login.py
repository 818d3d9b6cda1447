"""The login page in a real browser without scripts, and over TLS, on the real process."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
from playwright.sync_api import Browser

from tests.browser.test_web_process import Web, free_port, make_tables
from tests.integration import web_servers

PASSWORD = "correct horse battery staple"


def add_user(home: Path) -> None:
    command = [sys.executable, "-m", "poller", "user", "add", "kim", "--role", "admin"]
    environment = {"POLLER_HOME": str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    subprocess.run(command, env=environment, input=PASSWORD, text=True, cwd=home, check=True)


def test_a_person_logs_in_and_out_without_scripts(
    browser: Browser, tmp_path: Path, valkey_url: str
) -> None:
    """The page that was asked for is shown after the login, and not after the log-out."""
    make_tables(tmp_path)
    add_user(tmp_path)
    web = Web(tmp_path, valkey_url, free_port())
    web.wait()
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{web.url}/jobs")
        assert page.url == f"{web.url}/login?next=jobs"
        page.get_by_label("Name").fill("kim")
        page.get_by_label("Password").fill("a wrong password")
        page.get_by_role("button", name="Log in").click()
        assert page.get_by_role("alert").inner_text() == "The name or the password is wrong."
        page.get_by_label("Name").fill("kim")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        assert page.url == f"{web.url}/jobs"
        [cookie] = [each for each in context.cookies() if each["name"] == "poller_session"]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        page.get_by_role("button", name="Log out").click()
        assert page.url == f"{web.url}/login"
        page.goto(f"{web.url}/jobs")
        assert page.url == f"{web.url}/login?next=jobs"
    finally:
        context.close()
        web.stop()


def test_the_page_is_served_over_tls(tmp_path: Path, valkey_url: str) -> None:
    """The certificate files of the settings are used, and the cookie is for TLS only."""
    make_tables(tmp_path)
    add_user(tmp_path)
    identity = web_servers.identity(tmp_path)
    files = {
        "POLLER_WEB_TLS_CERT": str(identity.ca_file),
        "POLLER_WEB_TLS_KEY": str(identity.ca_file.with_suffix(".key")),
    }
    web = Web(tmp_path, valkey_url, free_port(), **files)
    with httpx.Client(
        base_url=web.url, verify=ssl.create_default_context(cafile=identity.ca_file)
    ) as client:
        try:
            web.wait(client)
            form = {"name": "kim", "password": PASSWORD}
            done = client.post("/login", data=form)
            assert done.headers["set-cookie"].startswith("__Host-poller_session=")
            assert "Secure" in done.headers["set-cookie"]
            assert client.get("/api/v1/session").json()["name"] == "kim"
        finally:
            web.stop()
