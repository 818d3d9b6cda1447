"""Documents of the audit log without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.access import audit_entry
from poller.domain.access.masked_fields import MASK, masked


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "x"}, {"password": MASK}),
        ({"options": {"api_key": 7, "port": 161}}, {"options": {"api_key": MASK, "port": 161}}),
        ({"community": ["a"]}, {"community": MASK}),
        ({"headers": [{"Authorization": "Basic x"}]}, {"headers": [{"Authorization": MASK}]}),
        ({"url": "https://u:pw@h/p"}, {"url": f"https://u:{MASK}@h/p"}),
        ({"path": "/status?k=v&x=y"}, {"path": f"/status?{MASK}"}),
        ({"text": "poller_" + "a" * 43}, {"text": MASK}),
        ({"tags": ("core",), "n": 3, "none": None}, {"tags": ["core"], "n": 3, "none": None}),
        ({"has_token": True}, {"has_token": True}),
    ],
)
def test_secrets_are_masked_at_any_depth(value: Any, shown: Any) -> None:
    """By the name of the field, in URLs, in queries, and API tokens anywhere."""
    assert masked(value) == shown


@pytest.mark.parametrize("name", ["access_token", "apikey", "X-Api-Key", "client_secret", "pwd"])
def test_an_editor_sees_a_query_without_its_secrets(name: str) -> None:
    """Parameters whose names are those of secrets are masked; others stay."""
    value = {"path": f"/s?view=all&{name}=abc", "url": f"https://h/?{name}=abc&deep=1"}
    shown = {"path": f"/s?view=all&{name}={MASK}", "url": f"https://h/?{name}={MASK}&deep=1"}
    assert masked(value, whole_queries=False) == shown


def test_a_distribution_counts_old_values_without_secrets() -> None:
    """Values become texts, so they are masked before."""
    values = [({"password": "x"}, 2), ("b", 1)]
    assert audit_entry.distribution(values) == {f"{{'password': '{MASK}'}}": 2, "b": 1}


def test_many_values_and_names_are_bounded() -> None:
    """The others are counted, or left out: `count` of the row has the number."""
    found = audit_entry.distribution((number, 1) for number in range(100))
    assert len(found) == audit_entry.MOST_VALUES + 1
    assert found[audit_entry.OTHER_VALUES] == 80
    assert len(audit_entry.bounded_names([f"sw{n}" for n in range(5_000)])) <= 1_000
    assert audit_entry.bounded_names(["x" * 20_000]) == []
