"""Settings of workers: concurrency, isolation, caches, sessions, sinks, retention of results."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from poller import errors
from poller.domain.scheduling import session_limits
from poller.settings import sink_tables
from poller.settings.sink_tables import SinkTables
from poller.settings.word_lists import Words, split_at_commas

#: A poll holds its lease for up to this many times `spool_patience_s` while a slow store accepts
#: its readings and then its rows; see workers/results/writers.py.
LONGEST_WRITE = 10

_MONTH_S = 31 * 86_400


class WorkerFields(BaseModel):
    """How worker processes poll and store results. Durations are in seconds."""

    worker_concurrency: int = Field(
        16, ge=1, le=1000, description="Batches a worker process polls at the same time."
    )
    worker_jobs: int = Field(
        4,
        ge=0,
        le=1000,
        description="Jobs a worker process runs at the same time, beside its polls. With 0 the "
        "worker takes no jobs and announces none.",
    )
    worker_drain_s: float = Field(
        5.0,
        ge=0,
        le=600,
        description="How long a stopping worker lets running batches and jobs finish.",
    )
    worker_tags: Words = Field(
        (),
        description="Tags of this worker, as key=value. It serves targets that require no others.",
    )
    domains_s: float = Field(
        30.0,
        ge=1,
        le=3600,
        description="How often a worker checks the list of queues, in case a wake-up was lost.",
    )
    blocking_threads: int = Field(
        16, ge=1, le=256, description="Threads of a worker process for each blocking collector."
    )
    stuck_threads: int = Field(
        8,
        ge=1,
        le=256,
        description="Hanging threads of one collector before it is moved to a process of its own.",
    )
    isolated_collectors: Words = Field(
        (), description="Names of collectors that run in a process of their own."
    )
    isolation_memory_mb: int = Field(
        512,
        ge=64,
        le=1_000_000,
        description="Memory limit of the process of an isolated collector, in MB.",
    )
    answer_memory_mb: int = Field(
        512,
        ge=16,
        le=1_000_000,
        description="Memory for the unfinished answers of all polls of a worker process, in MB. "
        "Above it, polls with the largest answers are cut.",
    )
    quarantine_crashes: int = Field(
        3,
        ge=1,
        le=1000,
        description="Crashes of a collector's process within quarantine_window_s, in the whole "
        "cluster, after which no worker runs that collector.",
    )
    quarantine_window_s: float = Field(
        3600.0,
        ge=60,
        le=_MONTH_S,
        description="Period within which crashes of a collector's process are counted for its "
        "quarantine.",
    )
    target_cache: int = Field(
        50_000,
        ge=100,
        description="Targets a worker process caches, about 8 KB each; a poll of any other target "
        "costs several times as much.",
    )
    target_homes: bool = Field(
        True,
        description="Poll every target on its home worker while that one takes its batches: one "
        "worker then caches the target, not all of its queue.",
    )
    secret_cache_s: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="How long a worker uses a credential before it reads it again, beside a poll. "
        "A rotated credential is read before the next poll.",
    )
    secret_cache: int = Field(
        50_000,
        ge=100,
        description="Decrypted credentials that a worker process keeps in memory; the least "
        "recently used one gives way.",
    )
    stale_limit_s: float = Field(
        86_400.0,
        ge=60,
        le=_MONTH_S,
        description="How long a worker uses a credential, or a target that was edited, as it knows "
        "them while the database does not answer. After that their targets are not polled.",
    )
    session_idle_s: float = Field(
        600.0,
        ge=0,
        le=86_400,
        description="A session with a device is closed after this time without use.",
    )
    session_age_s: float = Field(
        86_400.0,
        ge=0,
        le=_MONTH_S,
        description="A session with a device is replaced at this age.",
    )
    sessions_per_host: int = Field(
        4,
        ge=1,
        le=1000,
        description="Sessions with one address and port at a time, per collector and worker "
        "process.",
    )
    session_pace_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="Shortest time between two new sessions with one address, per worker process.",
    )
    session_exceptions: Words = Field(
        (),
        description="Session limits of single collectors, as COLLECTOR.LIMIT=NUMBER with idle_s, "
        "age_s, per_host or pace_s, such as routeros.per_host=2.",
    )
    sessions: int = Field(
        4096,
        ge=1,
        le=100_000,
        description="Sessions of one worker process; beyond that a new session replaces the most "
        "recently used idle one.",
    )
    sinks: Words = Field(
        ("sql",),
        description="Sinks for readings: names of installed sinks, or of tables of `sink`.",
    )
    sink: SinkTables = Field(
        {},
        description="Options of sinks, a table [sink.NAME] for each. Its kind is an installed "
        "sink, NAME if not set, so that several of one kind are possible. In the environment JSON.",
    )
    spool_patience_s: float = Field(
        1.0,
        ge=0.05,
        le=30,
        description="How long a poll waits for its rows to be written before they are spooled to "
        "disk; at most a tenth of lease_margin_s.",
    )
    spool_mb: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Disk space of a worker process for rows that wait for a database or sink "
        "that is down, in MB.",
    )
    stream_length: int = Field(
        10_000, ge=10, description="Polls retained in the `stream` sink's Redis stream."
    )

    @field_validator(
        "session_exceptions", "sinks", "worker_tags", "isolated_collectors", mode="before"
    )
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        """Turn the text of an environment variable into words."""
        return split_at_commas(value)

    @field_validator("sink", mode="before")
    @classmethod
    def _parse_sink_tables(cls, value: Any) -> Any:
        """Turn the JSON text of an environment variable into tables."""
        return sink_tables.parsed(value)

    @field_validator("sink", mode="after")
    @classmethod
    def _check_sink_tables(cls, tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse tables with a bad name or with a secret in them."""
        sink_tables.check(tables)
        return tables

    @field_validator("session_exceptions", mode="after")
    @classmethod
    def _check_session_exceptions(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse words that are no limit of a collector."""
        try:
            session_limits.parse_exceptions(words, session_limits.Limits())
        except errors.InvalidSetting as error:
            raise ValueError(f"{error.message}; {error.hint}") from None
        return words

    @field_validator("spool_patience_s", mode="after")
    @classmethod
    def _check_spool_patience(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a patience that would let a lease run out during a write."""
        margin_s = info.data.get("lease_margin_s", math.inf)
        if value > margin_s / LONGEST_WRITE:
            raise ValueError(
                f"{value:g} is more than a tenth of lease_margin_s, which is {margin_s:g}: "
                "a poll whose rows wait for a slow database would lose its lease"
            )
        return value


class RetentionFields(BaseModel):
    """How long results are retained, in days."""

    runs_days: float = Field(
        30.0, gt=0, le=3650, description="How long successful runs are retained, in days."
    )
    runs_failed_days: float = Field(
        90.0, gt=0, le=3650, description="How long failed and refused runs are retained, in days."
    )
    readings_days: float = Field(
        35.0,
        gt=0,
        le=3650,
        description="How long every reading is retained in SQL, in days: about 0.6 bytes a value.",
    )
    history_5m_days: float = Field(
        400.0,
        ge=0,
        le=3650,
        description="How long roll-ups of 5 minutes are retained, in days. 0 makes none.",
    )
    history_1h_days: float = Field(
        730.0,
        ge=0,
        le=3650,
        description="How long roll-ups of an hour are retained, in days. 0 makes none.",
    )
    sql_history_metrics: Words = Field(
        (),
        description="Metrics whose 5-minute values are also written as plain rows, for SQL and "
        "Grafana; * and ? are wildcards. Needs PostgreSQL. Not set: none.",
    )
    sql_history_days: float = Field(
        35.0,
        gt=0,
        le=3650,
        description="How long the plain rows of sql_history_metrics are retained, in days.",
    )
    events_days: float = Field(
        90.0, gt=0, le=3650, description="How long events are retained in SQL, in days."
    )
    job_runs_days: float = Field(
        30.0,
        gt=0,
        le=3650,
        description="How long runs of jobs are retained, in days. The newest one of each job and "
        "scope is never deleted.",
    )
    target_days_days: float = Field(
        400.0,
        gt=0,
        le=3650,
        description="How long the daily statistics of targets are retained, in days.",
    )
    audit_days: float = Field(
        400.0, gt=0, le=3650, description="How long rows of the audit log are retained, in days."
    )
    alerts_days: float = Field(
        400.0,
        gt=0,
        le=3650,
        description="How long alerts, deliveries and maintenances that are over are retained, in "
        "days.",
    )
    events_length: int = Field(
        10_000,
        ge=100,
        description="Events retained in the Redis stream. During a longer outage of the database, "
        "older events are not copied to SQL.",
    )

    @field_validator("sql_history_metrics", mode="before")
    @classmethod
    def _split_metrics_at_commas(cls, value: Any) -> Any:
        """Turn the text of an environment variable into names of metrics."""
        return split_at_commas(value)

    @field_validator("sql_history_metrics", mode="after")
    @classmethod
    def _check_database_of_plain_rows(
        cls, metrics: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        """Refuse plain rows without PostgreSQL."""
        url = info.data.get("database_url")
        is_sqlite = url is not None and not url.get_secret_value().startswith("postgres")
        if metrics and is_sqlite:
            raise ValueError(
                "plain rows need PostgreSQL, and database_url is SQLite; "
                "set database_url, or leave sql_history_metrics empty"
            )
        return metrics
