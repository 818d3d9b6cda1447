"""Secrets of this process are masked in URLs, fields and texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.security.redaction import MASK, SHORTEST, Redactor, mask, redact_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://:hunter22@10.0.0.1:6379/0", f"redis://:{MASK}@10.0.0.1:6379/0"),
        (
            "postgresql://u:p%40ss@h/db?sslmode=require",
            f"postgresql://u:{MASK}@h/db?sslmode=require",
        ),
        ("postgresql://u:p@ss@h/db", f"postgresql://u:{MASK}@h/db"),
        (
            "postgresql://h/db?user=u&password=hunter22&x=1",
            f"postgresql://h/db?user=u&password={MASK}&x=1",
        ),
        ("sqlite:////var/lib/poller.db", "sqlite:////var/lib/poller.db"),
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        (
            "cannot reach redis://a:bcdef@h:1 or amqp://c:ghijk@i:2",
            f"cannot reach redis://a:{MASK}@h:1 or amqp://c:{MASK}@i:2",
        ),
    ],
)
def test_urls_lose_their_password_and_nothing_else(url: str, expected: str) -> None:
    """Host, user and path stay readable."""
    assert redact_url(url) == expected


def test_a_mask_reveals_nothing() -> None:
    """Secrets of any length have the same mask."""
    assert mask("a") == mask("a much longer secret") == MASK
    assert mask("") == ""


@given(st.text(min_size=6), st.text(), st.text())
def test_a_remembered_secret_is_found_anywhere(secret: str, before: str, after: str) -> None:
    """Any text may surround the secret."""
    assert secret not in Redactor([secret]).text(f"{before}{secret}{after}").replace(MASK, "")


def naively_masked(secrets: list[str], text: str) -> str:
    """The reference: from left to right, mask the longest secret at each position."""
    masked, at = "", 0
    while at < len(text):
        here = [s for s in secrets if len(s) >= SHORTEST and text.startswith(s, at)]
        longest = max(here, key=len, default="")
        masked += MASK if longest else text[at]
        at += len(longest) or 1
    return masked


#: Secrets of two letters overlap, share beginnings and contain each other.
ALIKE = st.text("ab", min_size=SHORTEST - 1, max_size=SHORTEST + 4)


@given(st.lists(ALIKE, max_size=8), st.lists(ALIKE | st.text("abc ", max_size=3), max_size=8))
def test_similar_secrets_are_masked_as_by_the_reference(
    secrets: list[str], pieces: list[str]
) -> None:
    """Neither the order of the secrets nor a repeated one changes the result."""
    text = "".join([*pieces, *secrets[:2]])
    expected = naively_masked(secrets, text)
    assert (
        Redactor(secrets).text(text)
        == Redactor([*reversed(secrets), *secrets]).text(text)
        == expected
    )


def test_thousands_of_secrets_cost_hardly_more_than_a_few() -> None:
    """Remembering a password per router takes milliseconds, not minutes."""
    began, redactor = time.process_time(), Redactor()
    for number in range(5000):
        redactor.remember(f"router-password-{number:05}")
    assert redactor.text("login with router-password-04321 failed") == f"login with {MASK} failed"
    assert time.process_time() - began < 2


def test_fields_with_secret_names_are_masked_whole() -> None:
    """Fields inside of other fields and of lists are masked too."""
    record = {
        "event": "login to redis://:hunter22@h",
        "password": "x",
        "args": [{"api_key": 1, "device": "sw1"}, "tail s3cretpass"],
        "community": "",
        "samples": 7,
    }
    assert Redactor(["s3cretpass"]).fields(record) == {
        "event": f"login to redis://:{MASK}@h",
        "password": MASK,
        "args": [{"api_key": MASK, "device": "sw1"}, f"tail {MASK}"],
        "community": "",
        "samples": 7,
    }


def test_short_secrets_are_not_searched_for() -> None:
    """Masking every "a" would hide the whole log."""
    assert Redactor(["a"]).text("a word") == "a word"


def test_the_longer_of_two_secrets_is_masked_first() -> None:
    """No part of the longer secret is left over."""
    assert Redactor(["secret", "secret-and-more"]).text("x secret-and-more y") == f"x {MASK} y"
