"""Secret parts of settings."""

from __future__ import annotations

import pytest

from poller.settings.masking import secret_parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("redis://:pw@host:6379/0", ["pw"]),
        ("postgresql://user:pw@host/db", ["pw"]),
        ("redis://host:6379/0", []),
        ("sqlite:////x/y.db", []),
        ("ops:pw", ["ops", "pw"]),
        ("key1,key2", ["key1", "key2"]),
    ],
)
def test_the_secret_parts_of_a_setting(text: str, parts: list[str]) -> None:
    """The host of a URL is not secret."""
    assert secret_parts(text) == parts
