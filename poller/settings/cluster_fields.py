"""Settings of the cluster: where it lives, how the leader schedules, adaptive intervals."""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

_MONTH_S = 31 * 86_400


class PlaceFields(BaseModel):
    """Where the data, the servers and the key of this installation are."""

    home: Path = Field(
        Path(".poller"),
        description="Directory of the embedded server's data, logs, key file and SQLite file. "
        "Not set: the nearest .poller in this directory or above, else a new one here.",
    )
    redis_url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="Redis or Valkey server. Not set: `poller up` starts its own.",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL: sqlite:/// or postgresql://. "
        "Empty: poller.db in the home directory.",
    )
    secret_key: SecretStr | None = Field(
        None,
        description="Base64 key(s) of 32 bytes, comma separated; the first encrypts. "
        "Not set: home/secret.key.",
    )
    key_prefix: str = Field(
        "poller:",
        min_length=1,
        max_length=40,
        description="Prefix of every Redis key except Celery's queues, which have none: "
        "each cluster needs its own Redis database.",
    )

    default_collector: str = Field(
        "ping",
        max_length=100,
        description="Collector of a device that is added or imported without one, so that it is "
        "polled at once. Empty: such a device has no target.",
    )

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        """Resolve `~` and relative paths once, at start."""
        return value.expanduser().absolute()


class SchedulingFields(BaseModel):
    """How the leader claims targets and publishes batches. Durations are in seconds."""

    leader_lock_s: float = Field(
        4.0, ge=1, le=60, description="How long leadership lasts without renewal."
    )
    leader_renew_s: float = Field(
        1.0, gt=0, le=20, description="How often the leader renews its leadership."
    )
    tick_s: float = Field(
        0.5,
        ge=0.05,
        le=2,
        description="Longest pause between two ticks of the leader; "
        "with a large fleet it ticks more often.",
    )
    leader_election: bool = Field(
        True, description="False: this beat leads without a lock. Only for a single beat."
    )
    instance_id: str = Field(
        "",
        max_length=100,
        description="Name of this beat in logs, events and the list of beats; each needs its own. "
        "Empty: host and process, such as host1:4711.",
    )
    job_tick_s: float = Field(
        5.0,
        ge=0.5,
        le=60,
        description="How often the leader closes abandoned runs of jobs, looks for retries and "
        "compares its entries with the installed jobs.",
    )
    reconcile_s: float = Field(
        30.0,
        ge=1,
        le=3600,
        description="How often the leader checks the inventory's version, in case a wake-up was "
        "lost.",
    )
    batch_size: int = Field(64, ge=1, le=1000, description="Targets per batch, one Celery message.")
    claim_limit: int = Field(
        2048, ge=1, le=20000, description="Targets the leader claims in one call."
    )
    max_queue: int = Field(
        256,
        ge=1,
        le=10000,
        description="Batches that may wait in one queue; never more than two for each batch its "
        "workers can poll at a time. Other due targets stay on the board.",
    )
    queue_wait_s: float = Field(
        30.0,
        ge=1,
        le=3600,
        description="How long a batch may wait in its queue before its targets are due again.",
    )
    lease_margin_s: float = Field(
        15.0,
        ge=1,
        le=600,
        description="How long a lease lasts beyond the time limit of the poll it covers.",
    )

    @field_validator("instance_id", mode="after")
    @classmethod
    def _check_instance(cls, value: str) -> str:
        """Refuse a name that a log line or a table would break."""
        for character in value:
            if not character.isprintable() or character.isspace():
                raise ValueError("a blank or a character that cannot be printed is in it")
        return value

    @field_validator("leader_renew_s", mode="after")
    @classmethod
    def _check_renewal(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a period that allows no failed renewal."""
        lock_s = info.data.get("leader_lock_s", math.inf)
        if value > lock_s / 2:
            raise ValueError(
                f"{value:g} is more than half of leader_lock_s, which is {lock_s:g}: "
                "one lost renewal would end the leadership"
            )
        return value


class AdaptiveFields(BaseModel):
    """Defaults of a target with the policy `adaptive`. Durations are in seconds."""

    adaptive_min_s: float = Field(
        5.0, ge=1, le=_MONTH_S, description="Shortest interval of an adaptive target."
    )
    adaptive_base_s: float = Field(
        10.0, ge=1, le=_MONTH_S, description="Interval of a healthy adaptive target."
    )
    adaptive_max_s: float = Field(
        300.0, ge=1, le=_MONTH_S, description="Longest interval of an adaptive target."
    )
    adaptive_alpha: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Weight of a new adaptive interval against the previous one. 1: no smoothing.",
    )
    adaptive_jitter: float = Field(
        0.05,
        ge=0,
        le=0.5,
        description="Share by which an adaptive interval is lengthened or shortened at random.",
    )
    adaptive_stretch: float = Field(
        0.1,
        ge=0,
        le=10,
        description="Share by which each overdue batch beyond the first lengthens an adaptive "
        "interval.",
    )
    adaptive_penalty: float = Field(
        0.6,
        ge=0,
        le=10,
        description="An adaptive interval is divided by 1 + this number x failures in a row, "
        "until the breaker opens.",
    )

    @field_validator("adaptive_base_s", "adaptive_max_s", mode="after")
    @classmethod
    def _check_adaptive_order(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a base below the minimum, and a maximum below the base."""
        lower_bounds = {"adaptive_base_s": "adaptive_min_s", "adaptive_max_s": "adaptive_base_s"}
        lower = lower_bounds[str(info.field_name)]
        lower_value = info.data.get(lower, 0)
        if value < lower_value:
            raise ValueError(f"{value:g} is less than {lower}, which is {lower_value:g}")
        return value
