"""The options of a store behind HTTP, and the headers that their files become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from poller import errors
from poller.sinks.http_options import HttpStoreOptions, SecretFiles
from poller.sinks.store_connection import parse_retry_after

URL = "http://127.0.0.1:8428"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "ftp://host"}, "begins with http"),
        ({"url": "http://user:word@host"}, "username and password_file"),
        ({"username": "me"}, "belong together"),
        ({"password_file": "/word"}, "belong together"),
        ({"username": "a:b", "password_file": "/word"}, "no colon"),
        (
            {"username": "me", "password_file": "/word", "bearer_token_file": "/token"},
            "not both",
        ),
        ({"key_file": "/key.pem"}, "cert_file"),
        ({"ca_file": "relative.pem"}, "begins with /"),
        ({"url": "https://host", "ca_file": "/ca.pem", "insecure": True}, "contradict"),
        ({"headers": {"Authorization": "Bearer x"}}, "header_files"),
        ({"headers": {"Content-Length": "1"}}, "no header that can be set"),
        ({"headers": {"content-type": "text/plain"}}, "no header that can be set"),
        ({"header_files": {"Authorization": "/a"}, "bearer_token_file": "/b"}, "contradict"),
        ({"headers": {"X-Tenant": "a"}, "header_files": {"x-tenant": "/b"}}, "given twice"),
        ({"cert_file": "/cert.pem"}, "https://"),
        ({"insecure": True}, "https://"),
        ({"url": "http://a..example"}, "no name of a host"),
        ({"url": f"http://{'a' * 64}.example"}, "no name of a host"),
        ({"headers": {"X-Scope": "a\r\nb: c"}}, "cannot be sent"),
        ({"header_files": {"X-Key": "relative"}}, "begins with /"),
        ({"tokens": "x"}, "Extra inputs"),
    ],
)
def test_options_that_contradict_or_carry_a_secret_are_refused(
    options: dict[str, Any], text: str
) -> None:
    """A mistake is named with what to give instead."""
    with pytest.raises(pydantic.ValidationError, match=text):
        HttpStoreOptions(**{"url": URL, **options})


def test_the_login_becomes_a_header(tmp_path: Path) -> None:
    """User and password are sent as basic authentication, beside the other headers."""
    (tmp_path / "word").write_text("open sesame\n")
    options = HttpStoreOptions(
        url=URL, username="me", password_file=tmp_path / "word", headers={"X-Scope-OrgID": "net"}
    )
    headers = SecretFiles(options, "prom").headers()
    assert headers == [
        ("X-Scope-OrgID", "net"),
        ("Authorization", "Basic bWU6b3BlbiBzZXNhbWU="),
    ]


def test_a_changed_token_is_read_again(tmp_path: Path) -> None:
    """A token that another program renews is used from the next request on."""
    file = tmp_path / "token"
    file.write_text("first")
    secrets = SecretFiles(HttpStoreOptions(url=URL, bearer_token_file=file), "prom", "Token")
    assert secrets.headers() == [("Authorization", "Token first")]
    file.write_text("the second")
    assert secrets.headers() == [("Authorization", "Token the second")]


@pytest.mark.parametrize("content", [None, "", "two\nlines"])
def test_a_secret_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    """The error names sink, option and file, and repeats nothing of the file."""
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    secrets = SecretFiles(HttpStoreOptions(url=URL, header_files={"X-Api-Key": file}), "prom")
    with pytest.raises(errors.InvalidSetting, match=r'"prom": header_files.X-Api-Key') as raised:
        secrets.headers()
    assert "two" not in str(raised.value)


def test_files_of_tls_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    """A CA file or client certificate that is none is said when the sink is made."""
    (tmp_path / "no.pem").write_text("nothing")
    for option in ("ca_file", "cert_file"):
        options = HttpStoreOptions(url="https://host", **{option: tmp_path / "no.pem"})
        with pytest.raises(errors.InvalidSetting, match=option):
            SecretFiles(options, "prom").context()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        ("-1", 0.0),
        ("9" * 400, 86_400.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, seconds: float | None) -> None:
    """Both forms of the header are read; anything else asks for nothing."""
    assert parse_retry_after(value, now=40.0) == seconds
