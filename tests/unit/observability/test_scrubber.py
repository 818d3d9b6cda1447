"""No secret leaves in a report, at any depth and under any usual name."""

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
        "password", "passwd", "passphrase", "auth_password", "priv_password", "community",
        "communities", "snmp_community", "auth_key", "priv_key", "authkey", "api_key", "apikey",
        "secret_key", "private_key", "secret", "token", "access_token", "Authorization", "cookie",
        "Set-Cookie", "credential", "dsn", "sentry_dsn", "envelope", "keys",
    ],
)  # fmt: skip
def test_a_field_with_a_secret_name_is_masked_at_any_depth(name: str) -> None:
    """Extra, breadcrumbs, request and local variables of a frame are scrubbed."""
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
    """A secret unknown to this process is masked as well."""
    assert SECRET not in scrubber.text(text, plain)


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 12))
def test_a_known_secret_is_found_wherever_it_is_quoted(before: str, after: str, depth: int) -> None:
    """Known secrets are masked in values and in names, at any depth."""
    redact = Redactor([SECRET]).text
    value: Any = before + SECRET + after
    for _ in range(depth):
        value = [{value if isinstance(value, str) else "x": value}]
    assert SECRET not in json.dumps(scrubber.scrubbed({"extra": value}, redact), ensure_ascii=False)


def test_values_without_secrets_stay() -> None:
    """Levels, line numbers and fingerprints are not masked."""
    event = {
        "level": "error",
        "lineno": 7,
        "handled": True,
        "x": None,
        "fingerprint": ["collector", "snmp", "KeyError"],
    }
    assert scrubber.scrubbed(event, plain) == event


def test_a_structure_without_end_is_cut_off() -> None:
    """A list that contains itself ends in a mask."""
    endless: list[Any] = []
    endless.append(endless)
    assert scrubber.MASK in json.dumps(scrubber.scrubbed(endless, plain))


def test_an_object_is_shown_without_its_secrets() -> None:
    """The repr of any object in a report is scrubbed."""

    class Login:
        def __repr__(self) -> str:
            return f"Login(password={SECRET!r})"

    assert SECRET not in json.dumps(scrubber.scrubbed({"it": Login()}, plain))
