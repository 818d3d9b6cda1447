"""Policies of the domain, made from settings: one function per policy, seconds turned into ms."""

from __future__ import annotations

from poller.domain.failures import circuit_breaker, retry, site_outage
from poller.domain.scheduling import session_limits
from poller.domain.scheduling.interval import Adaptive
from poller.settings.fields import Settings

#: No retry of a poll waits longer than this, whatever `retry_base_s` and `retry_tries` say.
LONGEST_RETRY_WAIT_S = 60.0


def adaptive_interval(settings: Settings) -> Adaptive:
    """The numbers of an adaptive target that sets none of its own."""
    return Adaptive(
        min_ms=_ms(settings.adaptive_min_s),
        base_ms=_ms(settings.adaptive_base_s),
        max_ms=_ms(settings.adaptive_max_s),
        alpha=settings.adaptive_alpha,
        jitter=settings.adaptive_jitter,
        stretch=settings.adaptive_stretch,
        penalty=settings.adaptive_penalty,
    )


def breaker_rules(settings: Settings) -> circuit_breaker.Rules:
    """When a target's breaker opens, and how long it waits."""
    base_ms = _ms(settings.breaker_base_s)
    cap_ms = max(base_ms, _ms(settings.breaker_cap_s))
    auth_ms = _ms(settings.breaker_auth_s)

    recent_cap_ms = max(base_ms, _ms(settings.breaker_recent_cap_s))

    usual = circuit_breaker.Rule(settings.breaker_failures, base_ms, cap_ms, recent_cap_ms)
    return circuit_breaker.rules(usual, auth_ms)


def retry_limits(settings: Settings) -> retry.Limits:
    """How often a failed poll is retried within its slot, and after which waits."""
    return retry.Limits(
        tries=settings.retry_tries, base_s=settings.retry_base_s, cap_s=LONGEST_RETRY_WAIT_S
    )


def session_rules(settings: Settings) -> session_limits.Rules:
    """Limits of the sessions with devices, for all collectors and for single ones."""
    usual = session_limits.Limits(
        idle_s=settings.session_idle_s,
        age_s=settings.session_age_s,
        per_host=settings.sessions_per_host,
        pace_s=settings.session_pace_s,
    )
    exceptions = session_limits.parse_exceptions(settings.session_exceptions, usual)
    return session_limits.Rules(usual, exceptions, settings.sessions)


def site_limits(settings: Settings) -> site_outage.Limits:
    """When a site counts as dark, and how its canary targets are polled."""
    return site_outage.Limits(
        settings.site_share,
        settings.site_least,
        settings.site_canaries,
        _ms(settings.site_probe_s),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
