"""No secret leaves in a report, wherever it hides and whatever it is called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.observability import scrubber
from poller.security.redaction import Redactor

SECRET = "s3cr3t-value"


def plain(text: str) -> str:
    return text


@pytest.mark.parametrize(
    "name",
    [
        "password", "passwd", "passphrase", "auth_password", "priv_password", "community", "communities",
        "snmp_community", "auth_key", "priv_key", "authkey", "api_key", "apikey", "secret_key", "private_key", "secret",
        "token", "access_token", "Authorization", "cookie", "Set-Cookie", "credential", "dsn", "sentry_dsn", "envelope",
        "keys",
    ],
)  # fmt: skip
def test_a_field_with_a_telling_name_is_masked_at_any_depth(name: str) -> None:
    """In extra, in breadcrumbs, in a request, in the local variables of a frame."""
    frame = {"function": "collect", "vars": {name: SECRET, "more": [{"deep": ({name: [SECRET]},)}]}}
    event: dict[str, Any] = {
        "exception": {"values": [{"stacktrace": {"frames": [frame]}}]},
        "extra": {"a": {"b": [{name: {"whole": SECRET}}]}},
        "breadcrumbs": {"values": [{"data": {name: SECRET}}]},
        "request": {"headers": {name: SECRET}, "data": {name: SECRET}},
    }
    assert SECRET not in json.dumps(scrubber.scrubbed(event, plain))


@pytest.mark.parametrize(
    "text",
    [
        f"cannot connect to redis://:{SECRET}@10.0.0.1:6379/0",
        f"postgresql://poller:{SECRET}@db/poller refused",
        f"https://{SECRET}@sentry.example/42",
        f"community={SECRET} is wrong",
        f"Login(username='a', password='{SECRET}')",
        f"{{'auth_key': '{SECRET}'}}",
        f"snmp_community: {SECRET}, port: 161",
        f"priv_key={SECRET}&x=1",
    ],
)
def test_a_secret_is_found_in_a_text_by_its_form(text: str) -> None:
    """Also one this process never opened."""
    assert SECRET not in scrubber.text(text, plain)


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 12))
def test_a_known_secret_is_found_wherever_it_is_quoted(before: str, after: str, depth: int) -> None:
    """In values and in names, between anything and at any depth."""
    known = Redactor([SECRET]).text
    value: Any = before + SECRET + after
    for _ in range(depth):
        value = [{value if isinstance(value, str) else "x": value}]
    assert SECRET not in json.dumps(scrubber.scrubbed({"extra": value}, known), ensure_ascii=False)


def test_what_tells_nothing_stays() -> None:
    """A report that is masked to the last word helps nobody."""
    event = {
        "level": "error",
        "lineno": 7,
        "handled": True,
        "x": None,
        "fingerprint": ["collector", "snmp", "KeyError"],
    }
    assert scrubber.scrubbed(event, plain) == event


def test_a_structure_without_end_is_cut_off() -> None:
    """It is not followed for ever."""
    endless: list[Any] = []
    endless.append(endless)
    assert scrubber.MASK in json.dumps(scrubber.scrubbed(endless, plain))


def test_an_object_is_told_without_its_secrets() -> None:
    """Whatever has found its way into a report."""

    class Login:
        def __repr__(self) -> str:
            return f"Login(password={SECRET!r})"

    assert SECRET not in json.dumps(scrubber.scrubbed({"it": Login()}, plain))
