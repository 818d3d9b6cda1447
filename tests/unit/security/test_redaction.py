"""No secret of this process gets into a line that somebody reads."""

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


def test_a_mask_tells_nothing_about_what_it_hides() -> None:
    """Not even the length."""
    assert mask("a") == mask("a much longer secret") == MASK
    assert mask("") == ""


@given(st.text(min_size=6), st.text(), st.text())
def test_a_remembered_secret_is_found_anywhere(secret: str, before: str, after: str) -> None:
    """Whatever stands around it."""
    assert secret not in Redactor([secret]).text(f"{before}{secret}{after}").replace(MASK, "")


def naively(secrets: list[str], text: str) -> str:
    """What masking means: at each place, from left to right, the longest secret goes."""
    masked, at = "", 0
    while at < len(text):
        found = max(
            (s for s in secrets if len(s) >= SHORTEST and text.startswith(s, at)),
            key=len,
            default="",
        )
        masked, at = (masked + MASK, at + len(found)) if found else (masked + text[at], at + 1)
    return masked


#: Of two letters, so that they overlap, begin alike and contain each other.
ALIKE = st.text("ab", min_size=SHORTEST - 1, max_size=SHORTEST + 4)


@given(st.lists(ALIKE, max_size=8), st.lists(ALIKE | st.text("abc ", max_size=3), max_size=8))
def test_secrets_that_resemble_each_other_are_masked_as_they_come(
    secrets: list[str], pieces: list[str]
) -> None:
    """Nothing else is; and neither the order in which they were remembered nor a second time matters."""
    text = "".join([*pieces, *secrets[:2]])
    expected = naively(secrets, text)
    assert (
        Redactor(secrets).text(text)
        == Redactor([*reversed(secrets), *secrets]).text(text)
        == expected
    )


def test_thousands_of_secrets_cost_hardly_more_than_a_few() -> None:
    """A password for each router: to remember all of them takes milliseconds, not minutes."""
    began, redactor = time.process_time(), Redactor()
    for number in range(5000):
        redactor.remember(f"router-password-{number:05}")
    assert redactor.text("login with router-password-04321 failed") == f"login with {MASK} failed"
    assert time.process_time() - began < 2


def test_fields_with_telling_names_are_masked_whole() -> None:
    """Also inside of other fields, and in lists."""
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


def test_short_texts_are_not_hunted() -> None:
    """Masking every "a" would hide the whole log."""
    assert Redactor(["a"]).text("a word") == "a word"


def test_the_longer_of_two_secrets_is_masked_first() -> None:
    """No tail of it is left over."""
    assert Redactor(["secret", "secret-and-more"]).text("x secret-and-more y") == f"x {MASK} y"
