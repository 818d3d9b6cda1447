"""Scopes and plans as people type them."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.jobs import plan_text


def test_a_scope_is_a_kind_and_an_id() -> None:
    """The id may have a colon; `global` is the whole cluster."""
    assert plan_text.parse_scope("scope", "site:ams") == ("site", "ams")
    assert plan_text.parse_scope("scope", "range:10:20") == ("range", "10:20")
    assert plan_text.parse_scope("scope", "global") == ("global", "global")


@pytest.mark.parametrize("text", ["ams", ":ams", "site:", ":"])
def test_a_text_that_is_no_scope_is_refused(text: str) -> None:
    """The error names the field and the form."""
    with pytest.raises(errors.InvalidInput, match="is no scope") as caught:
        plan_text.parse_scope("--scope", text)
    assert (caught.value.field, caught.value.hint) == ("--scope", "write KIND:ID, such as site:ams")


def test_an_instant_is_in_utc_unless_it_has_an_offset() -> None:
    """A text that is no time is refused."""
    two = plan_text.parse_instant_ms("plan", "2026-11-18T02:00:00Z")
    assert plan_text.parse_instant_ms("plan", "2026-11-18 02:00:00") == two
    assert plan_text.parse_instant_ms("plan", "2026-11-18T03:00:00+01:00") == two
    with pytest.raises(errors.InvalidInput, match='plan: "soon" is no time'):
        plan_text.parse_instant_ms("plan", "soon")
