"""Fifty metric rules such as a network has: half look at every interface poll, none holds."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts import rule_rows
from poller.db.alerts.alert_tables import alert_rules
from poller.db.alerts.rule_rows import StoredRules
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.alerts.rule import (
    CertificateExpiry,
    InterfaceDown,
    Measure,
    MetricCondition,
    Rule,
    Threshold,
)
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import ANY, TargetFilter

COUNT = 50
_OCTETS = ("ifHCInOctets", "ifHCOutOctets")
_SLOW_COUNTERS = ("ifInErrors", "ifOutErrors", "ifInDiscards", "ifOutDiscards")
#: More than a simulated interface does.
_NEVER = 1e15


def rules() -> list[Rule]:
    """Return the rules, which are not stored yet."""
    made = [
        Rule(f"bench-{number}", condition, where=where, owner="bench")
        for number, (condition, where) in enumerate(_rules())
    ]
    assert len(made) == COUNT
    return made


def _rules() -> Iterator[tuple[MetricCondition, TargetFilter]]:
    for metric in _OCTETS:
        for above in (95.0, 98.0, 99.0):
            yield Threshold(metric, Measure.PERCENT_OF_SPEED, above=above, clear=90.0), ANY
        yield Threshold(metric, Measure.RATE, above=_NEVER), ANY
    for metric in _SLOW_COUNTERS:
        for above in (_NEVER, 2 * _NEVER):
            yield Threshold(metric, Measure.RATE, above=above), ANY
    for metric in ("ifHCInBroadcastPkts", "ifHCInMulticastPkts"):
        yield Threshold(metric, Measure.RATE, above=_NEVER), ANY
    yield Threshold("sysUpTime", below=1.0), ANY
    yield Threshold("ifHighSpeed", above=_NEVER), ANY
    yield Threshold("ifMtu", below=64.0), ANY
    yield Threshold("ifNumber", above=_NEVER), ANY
    yield InterfaceDown(), ANY
    yield InterfaceDown(days=1.0), ANY
    yield CertificateExpiry(), ANY
    yield CertificateExpiry(days=3.0), ANY
    for number in range(12):  # of things that these devices do not have
        yield Threshold(f"entSensorValue{number}", above=float(number)), ANY
    for number in range(12):  # of other devices
        where = target_filter.parse(f"site:elsewhere-{number}")
        yield Threshold(_OCTETS[0], Measure.RATE, above=1.0), where


def store(engine: Engine) -> StoredRules:
    """Store the rules in an upgraded database in place of all others. Returns what is stored."""
    forget(engine)
    actor = Actor("bench", ActorKind.SYSTEM, "")
    for rule in rules():
        rule_rows.add(engine, rule, actor)
    return rule_rows.load(engine)


def forget(engine: Engine) -> None:
    """Remove every rule, the built-in ones too."""
    with sql.writing(engine) as conn:
        conn.execute(sa.delete(alert_rules))
