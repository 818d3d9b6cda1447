"""Policies of the domain, made from settings."""

from __future__ import annotations

import pytest

from poller import settings
from poller.domain.failures import circuit_breaker, error_codes
from poller.domain.scheduling.interval import Adaptive
from poller.settings import policies


def test_adaptive_settings_become_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting is one number of the policy, seconds turned into ms."""
    for name, value in {
        "MIN_S": 2,
        "BASE_S": 4.5,
        "MAX_S": 90,
        "ALPHA": 0.5,
        "JITTER": 0,
        "STRETCH": 1,
    }.items():
        monkeypatch.setenv(f"POLLER_ADAPTIVE_{name}", str(value))
    monkeypatch.setenv("POLLER_ADAPTIVE_PENALTY", "2")
    assert policies.adaptive_interval(settings.load()) == Adaptive(
        2_000, 4_500, 90_000, alpha=0.5, jitter=0, stretch=1, penalty=2
    )


def test_a_poll_that_waited_for_a_busy_host_opens_no_breaker() -> None:
    """A busy host is our own limit, not a failure of the device."""
    rules = policies.breaker_rules(settings.Settings())
    assert (
        circuit_breaker.record(circuit_breaker.CLOSED, 1000, error_codes.HOST_BUSY, 0, rules, 0.5)
        == circuit_breaker.CLOSED
    )
    assert (
        circuit_breaker.record(circuit_breaker.CLOSED, 1000, error_codes.TIMEOUT, 0, rules, 0.5)
        != circuit_breaker.CLOSED
    )
