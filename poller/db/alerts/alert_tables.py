"""The tables of rules, alerts, maintenance and notifications. Instants are UTC milliseconds."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from poller.db.tables import Document, Key, metadata

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("owner", String(300), nullable=False),  # `builtin`, `file:PATH`, or an actor
    Column("enabled", Boolean, nullable=False),
    Column("body", Document, nullable=False),  # the rule as people write it
    Column("version", BigInteger, nullable=False),  # of all rules, when this one was changed
    Column("updated_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

#: One row: the number of the last change of rules. Workers and the leader compare it with theirs.
alert_rules_version = Table(
    "alert_rules_version",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("identity", Text, nullable=False),  # see `Subject.identity`
    Column("open_key", String(64), nullable=True, unique=True),  # its SHA-256; NULL once resolved
    Column("rule", String(200), nullable=False),
    Column("severity", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("device_id", BigInteger, nullable=True),
    Column("target_id", BigInteger, nullable=True),
    Column("device", String(200), nullable=False),  # names of that moment
    Column("target", String(200), nullable=False),
    Column("site", String(200), nullable=False),
    Column("series", Text, nullable=False),
    Column("labels", Document, nullable=False),
    Column("text", Text, nullable=False),
    Column("value", Float, nullable=True),
    Column("since_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("gone_ms", BigInteger, nullable=False),
    Column("fired_ms", BigInteger, nullable=False),
    Column("resolved_ms", BigInteger, nullable=False),
    Column("suppressed_by", String(250), nullable=False),
    Column("held_until_ms", BigInteger, nullable=False),
    Column("acknowledged", Document, nullable=True),  # by, note, at_ms, until_ms
    Column("flaps", Integer, nullable=False),
    Column("damped_until_ms", BigInteger, nullable=False),
    Index("ix_alerts_state_id", "state", "id"),
    Index("ix_alerts_device_id_id", "device_id", "id"),
    Index("ix_alerts_resolved_ms", "resolved_ms"),
    sqlite_autoincrement=True,
)

#: What happened to an alert, oldest first: fired, suppressed, acknowledged, told, resolved ...
alert_changes = Table(
    "alert_changes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("alert_id", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("kind", String(30), nullable=False),
    Column("text", Text, nullable=False),
    Column("actor", String(200), nullable=False),  # "" is the platform
    Index("ix_alert_changes_alert_id_id", "alert_id", "id"),
    sqlite_autoincrement=True,
)

#: Times in which nobody is told of what matches. A silence of one alert names it.
maintenances = Table(
    "maintenances",
    metadata,
    Column("id", Key, primary_key=True),
    Column("filter", Text, nullable=False),  # the filter language; "" with an alert or a rule
    Column("rule", String(200), nullable=False),  # "" is every rule
    Column("alert_identity", Text, nullable=False),  # "" is every alert
    Column("reason", Text, nullable=False),
    Column("starts_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),  # of recurring ones: the last day they recur
    Column("cron", String(100), nullable=False),  # "" is once
    Column("time_zone", String(100), nullable=False),
    Column("length_ms", BigInteger, nullable=False),  # of one recurrence
    Column("created_by", String(200), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Index("ix_maintenances_ends_ms", "ends_ms"),
    sqlite_autoincrement=True,
)

#: A notification to one receiver, with its attempts. `key` lets receivers drop repeats.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("key", String(100), nullable=False, unique=True),
    Column("route", String(100), nullable=False),
    Column("receiver", String(100), nullable=False),
    Column("kind", String(20), nullable=False),  # firing, resolved, escalation, summary, test
    Column("group_key", Text, nullable=False),
    Column("notice", Document, nullable=False),  # what is told, see domain/alerts/notice.py
    Column("state", String(20), nullable=False),  # waiting, sent, dead
    Column("attempts", Integer, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("lease_until_ms", BigInteger, nullable=False),
    Column("lease_token", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger, nullable=False),
    Column("answer", Text, nullable=False),  # of the receiver, or the last error
    Index("ix_deliveries_state_due_ms", "state", "due_ms"),
    Index("ix_deliveries_created_ms", "created_ms"),
    sqlite_autoincrement=True,
)

#: What a route was told of an alert, so that nothing is told twice and every end is told.
alert_tellings = Table(
    "alert_tellings",
    metadata,
    Column("alert_id", BigInteger, nullable=False),
    Column("route", String(100), nullable=False),
    Column("kind", String(20), nullable=False),  # firing, resolved, escalation
    Column("round", Integer, nullable=False),  # counts tellings of one kind: it was told again
    Column("delivery_id", BigInteger, nullable=False),
    Column("told_ms", BigInteger, nullable=False),
    UniqueConstraint("alert_id", "route", "kind", "round", name="uq_alert_tellings_once"),
    Index("ix_alert_tellings_delivery_id", "delivery_id"),
)

#: The device through which another one is reached. A device has one parent at most.
device_parents = Table(
    "device_parents",
    metadata,
    Column("device_id", ForeignKey("devices.id", ondelete="CASCADE"), primary_key=True),
    Column("parent_id", ForeignKey("devices.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("source", String(20), nullable=False),  # `hand`, `import` or `neighbours`
)

#: One row: who keeps the alerts. Every write of alerts checks the term, so a leader that was
#: replaced can write nothing, whatever became of Redis and its epochs meanwhile.
alert_keeper = Table(
    "alert_keeper",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("term", BigInteger, nullable=False),
    Column("holder", String(255), nullable=False),
    Column("seen_ms", BigInteger, nullable=False),  # last sign of life, by the board's clock
)
