"""Every table. Operators edit the inventory; workers write runs, readings and events in bulk.

Instants in the bulk tables are whole UTC milliseconds (`*_ms`): small, exact, the same on every
backend. Bulk tables have no foreign keys: a target that is removed while its poll is in flight must
not fail the other 63 rows of the batch.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only if the key is declared INTEGER.
Key = BigInteger().with_variant(Integer(), "sqlite")
# `sqlite_autoincrement`: a key is never used twice, not even that of a removed row, because boards,
# ledgers and readings refer to it. PostgreSQL's sequences do this by nature.

Document = JSON().with_variant(JSONB(), "postgresql")


class Instant(TypeDecorator[datetime]):
    """An aware UTC datetime, also on SQLite, which stores none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def by_code_point(length: int) -> String:
    """Return the type of a text that is sorted by code point, as SQLite and Python do, whatever
    the locale of a PostgreSQL database.
    """
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def _stamps() -> list[Column[Any]]:
    return [
        Column("created_at", Instant, nullable=False),
        Column("updated_at", Instant, nullable=False),
    ]


#: One row: the number of the last inventory change. Its row lock puts changes in commit order.
inventory = Table(
    "inventory",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)

sites = Table(
    "sites",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("requires", Document, nullable=False),
    *_stamps(),
    sqlite_autoincrement=True,
)

credentials = Table(
    "credentials",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("kind", String(50), nullable=False),
    Column("envelope", Text, nullable=False),  # AES-GCM; the key's id is inside
    Column("version", BigInteger, nullable=False),
    *_stamps(),
    sqlite_autoincrement=True,
)

devices = Table(
    "devices",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", by_code_point(200), nullable=False, unique=True),
    Column("address", by_code_point(255), nullable=False),
    Column("site_id", ForeignKey("sites.id"), nullable=True),
    Column("credential_id", ForeignKey("credentials.id"), nullable=True, index=True),
    Column("tags", Document, nullable=False),  # a list of words, for people and filters
    Column("requires", Document, nullable=False),  # key=value a worker must carry
    Column("enabled", Boolean, nullable=False),
    *_stamps(),
    # Lists are read in the order of names, of all devices or of one site.
    Index("ix_devices_site_id_name", "site_id", "name"),
    Index("ix_devices_address", "address"),
    Index("ix_devices_tags", "tags", postgresql_using="gin").ddl_if(dialect="postgresql"),
    Index(
        "ix_devices_disabled",
        "id",
        sqlite_where=text("enabled = 0"),
        postgresql_where=text("NOT enabled"),
    ),
    sqlite_autoincrement=True,
)

#: `interval_ms` is the interval, or the base of an adaptive one.
_SCHEDULE_FITS = """\
(policy = 'fixed' AND min_ms IS NULL AND max_ms IS NULL AND staleness IS NULL) OR
(policy = 'adaptive' AND min_ms IS NOT NULL AND max_ms IS NOT NULL AND staleness IS NOT NULL
 AND min_ms >= 1000 AND min_ms <= interval_ms AND interval_ms <= max_ms)"""

targets = Table(
    "targets",
    metadata,
    Column("id", Key, primary_key=True),
    Column("device_id", ForeignKey("devices.id", ondelete="CASCADE"), nullable=False),
    Column(
        "name", by_code_point(200), nullable=False
    ),  # unique per device; the collector's name by default
    Column("collector", String(100), nullable=False, index=True),
    Column("options", Document, nullable=False),
    Column(
        "credential_id", ForeignKey("credentials.id"), nullable=True, index=True
    ),  # else the device's
    Column("requires", Document, nullable=False),
    Column("interval_ms", BigInteger, nullable=False),
    Column("timeout_ms", BigInteger, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column(
        "version", BigInteger, nullable=False, index=True
    ),  # inventory.version of its last change
    *_stamps(),
    Column("policy", String(20), nullable=False, server_default="fixed"),
    Column("min_ms", BigInteger, nullable=True),  # the rest is for adaptive ones only
    Column("max_ms", BigInteger, nullable=True),
    Column("staleness", String(100), nullable=True),
    Index(
        "ix_targets_disabled",
        "id",
        sqlite_where=text("enabled = 0"),
        postgresql_where=text("NOT enabled"),
    ),
    UniqueConstraint("device_id", "name"),
    CheckConstraint(_SCHEDULE_FITS, name="schedule"),
    CheckConstraint("interval_ms >= 1000", name="interval"),
    CheckConstraint("timeout_ms > 0", name="timeout"),
    sqlite_autoincrement=True,
)

#: Ids of removed targets, so that reconcile learns of a removal without reading the whole fleet.
removed_targets = Table(
    "removed_targets",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False, index=True),
)

runs = Table(
    "runs",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("plan_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("error_code", String(50), nullable=False),
    Column("message", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger, nullable=False),
    Column("samples", Integer, nullable=False),
    Column("runner", String(255), nullable=False),
    Column("token", String(64), nullable=False),
    Column(
        "queue_ms", BigInteger, nullable=False, server_default="0"
    ),  # from the claim to the first start
    Column("collect_ms", BigInteger, nullable=False, server_default="0"),  # of the last attempt
    Column(
        "write_ms", BigInteger, nullable=False, server_default="0"
    ),  # its readings, to all sinks
    Index(
        "ix_runs_outcome_plan_ms", "outcome", "plan_ms"
    ),  # failed ones are asked for, and kept, apart
    Index(
        "ix_runs_error_code",
        "error_code",
        "outcome",
        "plan_ms",
        sqlite_where=text("error_code <> ''"),
        postgresql_where=text("error_code <> ''"),
    ),  # of failed runs only: a good poll does not touch it
    sqlite_with_rowid=False,  # small rows, always found by their key: no second tree
)

series_sets = Table(
    "series_sets",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # hash of `series`
    Column(
        "series", LargeBinary, nullable=False
    ),  # zlib of [[name, {label: value}, kind(, width)], ...]
    Column("size", Integer, nullable=False),
    Column(
        "seen_ms", BigInteger, nullable=False
    ),  # last announced by a worker, at most some hours ago
)

readings = Table(
    "readings",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("series_set_id", BigInteger, nullable=False),
    Column("values", LargeBinary, nullable=False),  # little-endian float64, in the set's order
    Index("ix_readings_at_ms", "at_ms"),
)

#: Polls of one target over a span, moved here from `readings` by the job `compact-history`:
#: domain/history/block_codec.py. Blocks of a target never overlap, and none crosses 00:00 UTC.
history_blocks = Table(
    "history_blocks",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("start_ms", BigInteger, primary_key=True, autoincrement=False),  # of the first poll
    Column("end_ms", BigInteger, nullable=False),  # of the last poll
    Column("polls", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("ix_history_blocks_end_ms", "end_ms"),
    postgresql_partition_by="RANGE (start_ms)",  # a UTC day each
)


def _rollups(name: str) -> Table[Any]:
    return Table(
        name,
        metadata,
        Column("target_id", BigInteger, primary_key=True, autoincrement=False),
        Column("start_ms", BigInteger, primary_key=True, autoincrement=False),
        Column("data", LargeBinary, nullable=False),
        Index(f"ix_{name}_start_ms", "start_ms"),
        postgresql_partition_by="RANGE (start_ms)",  # a UTC month each
    )


#: Roll-ups of 5 minutes; one row per target and UTC day.
history_5m = _rollups("history_5m")
#: Roll-ups of an hour; one row per target and UTC day.
history_1h = _rollups("history_1h")

#: Days of targets whose roll-ups are to be made, or made anew after late results.
history_pending = Table(
    "history_pending",
    metadata,
    Column("day_ms", BigInteger, primary_key=True, autoincrement=False),  # 00:00 UTC
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("marks", BigInteger, nullable=False),  # grows with every change of the day's polls
    sqlite_with_rowid=False,
)

#: One row per target and UTC day, made from `runs` by the job `daily-statistics`. A poll is a run
#: that started and has an outcome; durations and lateness are those of polls.
target_days = Table(
    "target_days",
    metadata,
    Column("day_ms", BigInteger, primary_key=True, autoincrement=False),  # 00:00 UTC
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("polls", Integer, nullable=False),
    Column("ok", Integer, nullable=False),
    Column("partial", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("unpolled", Integer, nullable=False),  # runs that were refused, lost or given up
    Column("mean_ms", BigInteger, nullable=False),
    Column("p50_ms", BigInteger, nullable=False),
    Column("p95_ms", BigInteger, nullable=False),
    Column("max_ms", BigInteger, nullable=False),
    Column("late_p95_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

#: Written from the Redis stream `events` by the leader; names are those of that moment.
events = Table(
    "events",
    metadata,
    Column("id", Key, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("kind", String(50), nullable=False),
    Column("device_id", BigInteger, nullable=True),
    Column("target_id", BigInteger, nullable=True),
    Column("message", Text, nullable=False),
    Column("data", Document, nullable=False),
    Column("device", String(200), nullable=False, server_default=text("''")),
    Column("target", String(200), nullable=False, server_default=text("''")),
    Column(
        "stream_id", String(64), nullable=True
    ),  # of its entry in the stream: no event is stored twice
    Index("ix_events_stream_id", "stream_id", unique=True),
    Index("ix_events_device_at_ms", "device", "at_ms"),
    Index("ix_events_kind_at_ms", "kind", "at_ms"),
)

#: Targets that need a person. A row is here exactly as long as its target is parked.
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("reason", String(50), nullable=False),
    Column("error_code", String(50), nullable=False),
    Column("message", Text, nullable=False),
    Column(
        "first_ms", BigInteger, nullable=False
    ),  # first failure of the row of failures that led here
    Column("last_ms", BigInteger, nullable=False),
    Column("parked_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger, nullable=False),  # next slow retry
    Column("attempts", Integer, nullable=False),
    Index("ix_dead_letters_parked_ms", "parked_ms"),  # the newest are asked for
)

#: Views of the list of devices that people saved under a name.
saved_filters = Table(
    "saved_filters",
    metadata,
    Column("owner", by_code_point(200), primary_key=True),  # the name of an actor
    Column("name", by_code_point(100), primary_key=True),
    Column("where", Text, nullable=False),
    Column("sort", String(20), nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
)

#: The jobs that workers announced. A row whose package no longer has the job is `gone`.
jobs = Table(
    "jobs",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("queue", String(200), nullable=False),  # which workers have it: one queue per package
    Column("distribution", String(200), nullable=False),  # `name version`
    Column("terms", Document, nullable=False),  # domain/jobs/job_terms.py
    Column("announced_ms", BigInteger, nullable=False),  # of these terms, or the end of a pause
    Column("paused_ms", BigInteger, nullable=True),
    Column("paused_by", String(200), nullable=False, server_default=text("''")),
    Column("gone_ms", BigInteger, nullable=True),
    Column(
        "told", String(20), nullable=False, server_default=text("''")
    ),  # state of the last event
    # why its scopes or plans could not be listed; "" for none
    Column("planning_fault", String(500), nullable=False, server_default=text("''")),
)

#: One row per plan of a job and a scope: lease, audit log and the planner's memory in one.
job_runs = Table(
    "job_runs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("job", String(100), nullable=False),
    Column("scope_kind", String(50), nullable=False),
    Column("scope_id", String(200), nullable=False),
    Column("plan_ms", BigInteger, nullable=False),
    Column("origin", String(20), nullable=False),  # `schedule`, or `demand` of a person
    Column("status", String(20), nullable=False),
    Column("attempt", Integer, nullable=False),  # 0: a stopping worker gave the first one back
    Column("max_attempts", Integer, nullable=False),
    Column("next_retry_ms", BigInteger, nullable=True),  # None: it is not run again by itself
    Column("reentrant", Boolean, nullable=False),  # it may be run again after its runner was lost
    Column("runner", String(255), nullable=False),
    Column("token", String(64), nullable=False),
    Column("dispatched_ms", BigInteger, nullable=False),  # when its message was made
    Column("started_ms", BigInteger, nullable=False),  # of the last attempt
    Column("heartbeat_ms", BigInteger, nullable=False),
    Column("stale_ms", BigInteger, nullable=False),  # from then on the runner counts as lost
    Column("finished_ms", BigInteger, nullable=True),
    Column("duration_ms", BigInteger, nullable=True),
    Column("rows_affected", BigInteger, nullable=False, server_default="0"),
    Column("result", Document, nullable=False),
    Column("error_code", String(50), nullable=False),
    Column("message", Text, nullable=False),
    # attempts in a row whose runner was lost
    Column("losses", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("job", "scope_kind", "scope_id", "plan_ms"),
    CheckConstraint("status IN ('RUNNING', 'SUCCESS', 'FAILED')", name="status"),
    CheckConstraint("attempt >= 0 AND attempt <= max_attempts", name="attempt"),
    CheckConstraint("duration_ms IS NULL OR duration_ms >= 0", name="duration"),
    Index(
        "ix_job_runs_running",
        "job",
        "scope_kind",
        "scope_id",
        sqlite_where=text("status = 'RUNNING'"),
        postgresql_where=text("status = 'RUNNING'"),
    ),  # without the lease's times: a heartbeat changes no index
    Index(
        "ix_job_runs_retry",
        "job",
        "next_retry_ms",
        sqlite_where=text("next_retry_ms IS NOT NULL"),
        postgresql_where=text("next_retry_ms IS NOT NULL"),
    ),
    Index(
        "ix_job_runs_failed",
        "id",
        sqlite_where=text("status = 'FAILED'"),
        postgresql_where=text("status = 'FAILED'"),
    ),  # few among many: the last failures of all jobs
    Index("ix_job_runs_job_status_id", "job", "status", "id"),
    Index("ix_job_runs_finished_ms", "finished_ms"),
    sqlite_autoincrement=True,
)

#: Local users. Users of OpenID Connect and of a trusted proxy have no row.
users = Table(
    "users",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("password_hash", String(255), nullable=False),  # Argon2id, with its parameters
    Column("enabled", Boolean, nullable=False),
    Column("last_login_ms", BigInteger, nullable=True),
    *_stamps(),
    sqlite_autoincrement=True,
)

#: API tokens. Only a hash is stored: a token is shown once, when it is made.
tokens = Table(
    "tokens",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("token_hash", String(64), nullable=False, unique=True),  # SHA-256 of 256 random bits
    Column("scopes", Document, nullable=False),
    Column("site", String(200), nullable=True),  # the one site that it is limited to
    Column("created_by", String(200), nullable=False),
    Column("expires_ms", BigInteger, nullable=True),
    Column("last_used_ms", BigInteger, nullable=True),  # to the minute
    *_stamps(),
    sqlite_autoincrement=True,
)

#: Logins of browsers. The cookie holds the value of which the hash is stored.
sessions = Table(
    "sessions",
    metadata,
    Column("session_hash", String(64), primary_key=True),
    Column("name", String(200), nullable=False, index=True),
    Column("role", String(20), nullable=False),
    Column("source", String(20), nullable=False),  # `local` or `oidc`
    Column("address", String(100), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),  # to the minute
    Column("expires_ms", BigInteger, nullable=False, index=True),
)

#: Every change by a person or program. A trigger refuses updates; retention removes old rows.
audit = Table(
    "audit",
    metadata,
    Column("id", Key, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("actor", String(200), nullable=False),
    Column("kind", String(20), nullable=False),  # domain/access/actor.py
    Column("address", String(100), nullable=False),
    Column("action", String(50), nullable=False),
    Column("subject", String(500), nullable=False),
    Column("count", Integer, nullable=False),
    Column("before", Document, nullable=False),
    Column("after", Document, nullable=False),
    Index("ix_audit_actor_id", "actor", "id"),
    Index("ix_audit_action_id", "action", "id"),
    Index("ix_audit_subject_id", "subject", "id"),
    sqlite_autoincrement=True,
)
