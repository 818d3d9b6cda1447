"""Values of tokens and sessions: their form, their hash, and that logs mask them."""

from __future__ import annotations

import pytest

from poller.security import token_values
from poller.security.redaction import MASK, Redactor


def test_a_value_is_random_and_recognisable() -> None:
    """256 random bits follow the prefix."""
    values = {token_values.new() for _ in range(100)}
    assert len(values) == 100
    assert all(value.startswith("poller_") and len(value) == 50 for value in values)
    assert all(token_values.is_value(value) for value in values)


@pytest.mark.parametrize("text", ["", "poller_", "poller_" + "x" * 44, "Poller_" + "x" * 43])
def test_another_text_is_no_value(text: str) -> None:
    """The database is not asked about it."""
    assert not token_values.is_value(text)


def test_the_form_token_follows_from_the_session() -> None:
    """The token of another session, or none, does not match."""
    mine, other = token_values.new(), token_values.new()
    assert token_values.is_form_token(mine, token_values.form_token(mine))
    assert not token_values.is_form_token(mine, token_values.form_token(other))
    assert not token_values.is_form_token(mine, "")
    assert not token_values.is_form_token(mine, "\u00e9")


def test_a_log_line_never_shows_a_value() -> None:
    """A value is masked although nobody told the redactor about it."""
    value = token_values.new()
    redacted = Redactor().fields(
        {"text": f"Bearer {value}.", "set_cookie": "x", "list": [value], "name": "poller_up"}
    )
    assert redacted == {
        "text": f"Bearer {MASK}.",
        "set_cookie": MASK,
        "list": [MASK],
        "name": "poller_up",
    }
