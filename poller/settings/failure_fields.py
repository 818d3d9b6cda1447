"""Settings of failure handling: retries, breakers, dead letters, dark sites."""

from __future__ import annotations

from pydantic import BaseModel, Field

_YEAR_S = 365 * 86_400


class FailureFields(BaseModel):
    """Consequences of a failed poll. Durations are in seconds."""

    retry_tries: int = Field(
        2, ge=0, le=5, description="Retries of a failed poll before its next slot."
    )
    retry_base_s: int = Field(
        1, ge=1, le=60, description="Longest wait before the first retry; doubles with each retry."
    )
    retry_share: float = Field(
        0.1, ge=0, le=1, description="Retries of a worker process as a share of its polls."
    )
    breaker_failures: int = Field(
        3, ge=1, le=1000, description="Failures in a row that open a target's breaker."
    )
    breaker_confirm_s: float = Field(
        30.0,
        ge=1,
        le=86_400,
        description="Interval of a failing target until its breaker opens, if it is shorter than "
        "its own. Such polls are limited by retry_share.",
    )
    breaker_base_s: float = Field(
        30.0, ge=1, le=86_400, description="First wait of an open breaker; doubles each time."
    )
    breaker_cap_s: float = Field(
        900.0, ge=1, le=86_400, description="Longest wait of an open breaker."
    )
    breaker_recent_cap_s: float = Field(
        300.0,
        ge=1,
        le=86_400,
        description="Longest wait of an open breaker if the target was well within the last day.",
    )
    breaker_auth_s: float = Field(
        900.0,
        ge=1,
        le=86_400,
        description="Wait of the breaker that a refused credential opens at once.",
    )
    deadletter_retry_s: float = Field(
        1800.0, ge=10, le=604_800, description="How often the target of a dead letter is polled."
    )
    deadletter_after_s: float = Field(
        86_400.0,
        ge=60,
        le=_YEAR_S,
        description="A breaker open for longer makes a dead letter.",
    )
    site_share: float = Field(
        0.6,
        gt=0,
        le=1,
        description="A site is dark when at least this share of its polls finds no device.",
    )
    site_least: int = Field(
        10,
        ge=1,
        le=100_000,
        description="A site is dark only if at least this many polls within a minute find no "
        "device; after as many in a row, its polls are not retried.",
    )
    site_canaries: int = Field(
        3, ge=1, le=100, description="Targets of a dark site that are polled to see if it is back."
    )
    site_probe_s: float = Field(
        30.0, ge=1, le=3600, description="How often a dark site's canary targets are polled."
    )
