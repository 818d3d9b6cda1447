"""Limits of kept sessions: for all, and by collector."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.scheduling import session_limits
from poller.domain.scheduling.session_limits import Limits, Rules

USUAL = Limits(idle_s=60, age_s=600, per_host=4, pace_s=0)


def test_exceptions_change_only_what_they_name() -> None:
    found = session_limits.parse_exceptions(
        ["routeros.per_host=2", "ssh.idle_s=0.5", "routeros.pace_s=1"], USUAL
    )
    rules = Rules(USUAL, found)
    assert rules.for_collector("routeros") == Limits(60, 600, 2, 1)
    assert rules.for_collector("ssh") == Limits(0.5, 600, 4, 0)
    assert rules.for_collector("http") is USUAL


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("per_host=2", "is not COLLECTOR.LIMIT=NUMBER"),
        ("routeros.per_host", "is not COLLECTOR.LIMIT=NUMBER"),
        ("routeros.per_hots=2", "per_hots"),
        ("routeros.per_host=0", "a whole number from 1 to 1000"),
        ("routeros.per_host=1.5", "a whole number from 1 to 1000"),
        ("routeros.idle_s=soon", "a number from 0 to 86400"),
        ("routeros.idle_s=nan", "a number from 0 to 86400"),
        ("routeros.pace_s=-1", "a number from 0 to 60"),
    ],
)
def test_a_wrong_exception_is_named_with_what_it_takes(word: str, said: str) -> None:
    with pytest.raises(errors.InvalidSetting) as caught:
        session_limits.parse_exceptions([word], USUAL)
    assert f'"{word}"' in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.hint
