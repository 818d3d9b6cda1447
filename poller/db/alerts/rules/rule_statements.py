"""The row of a rule, its value, and the statements that every change of rules is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller import errors
from poller.db import database_clock
from poller.db.alerts.alert_tables import alert_rules, alert_rules_version
from poller.domain.alerts import rule_form
from poller.domain.alerts.rule import Rule
from poller.domain.alerts.rules import builtin_rules
from poller.domain.inventory import did_you_mean, row_tag

#: The rules of one database, those of files and of people together.
MOST_RULES = rule_form.MOST_RULES
#: The owner of the rules of a file begins with this.
FILE = "file:"
_LIST = "poller rules list"


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A row. `rule` is None if this release cannot read it; `fault` then says why."""

    name: str
    owner: str
    enabled: bool
    body: Mapping[str, Any]
    version: int  # of all rules, when this one was changed
    updated_ms: int
    rule: Rule | None
    fault: str = ""

    @property
    def tag(self) -> str:
        """The tag of the fields that people edit."""
        return row_tag.row_tag({"body": self.body, "enabled": self.enabled, "owner": self.owner})

    @property
    def form(self) -> dict[str, Any]:
        """The rule as people write it."""
        off = {} if self.enabled else {"enabled": False}
        return {"name": self.name, **self.body, **off}


def raise_version(conn: Connection) -> int:
    """Count a change. Changes of rules follow each other: the row is locked until the commit."""
    raised = alert_rules_version.c.version + 1
    statement = sa.update(alert_rules_version).values(version=raised)
    found = conn.execute(statement.returning(alert_rules_version.c.version)).scalar()
    if found is None:
        conn.execute(sa.insert(alert_rules_version).values(id=1, version=1))
        return 1
    return int(found)


def read_version(conn: Connection) -> int:
    return int(conn.execute(sa.select(alert_rules_version.c.version)).scalar() or 0)


def find(conn: Connection, name: str) -> StoredRule | None:
    row = conn.execute(sa.select(alert_rules).where(alert_rules.c.name == name)).one_or_none()
    return None if row is None else stored_rule(row)


def one(conn: Connection, name: str) -> StoredRule:
    found = find(conn, name)
    if found is None:
        names = conn.execute(sa.select(alert_rules.c.name)).scalars().all()
        did_you_mean.refuse_unknown("rule", name, names, _LIST)
        raise errors.NotFound(f'no rule named "{name}"', hint=_LIST)
    return found


def refuse_too_many(conn: Connection, more: int) -> None:
    count = conn.execute(sa.select(sa.func.count()).select_from(alert_rules)).scalar_one()
    if count + more > MOST_RULES:
        raise errors.InvalidInput(
            f"rules: there would be {count + more}, at most {MOST_RULES} are allowed",
            hint="let one rule match more devices; anything complex belongs to Prometheus",
        )


def insert(conn: Connection, rule: Rule, raised: int) -> None:
    row = {
        "name": rule.name,
        "owner": rule.owner,
        "enabled": rule.enabled,
        "body": body_of(rule),
        "version": raised,
        "updated_ms": database_clock.read_ms(conn),
    }
    conn.execute(sa.insert(alert_rules).values(row))


def update(conn: Connection, name: str, rule: Rule, raised: int) -> None:
    body = body_of(rule)
    given = {"name": rule.name, "owner": rule.owner, "enabled": rule.enabled, "body": body}
    set_fields(conn, name, given, raised)


def set_fields(conn: Connection, name: str, given: Mapping[str, Any], raised: int) -> None:
    now_ms = database_clock.read_ms(conn)
    statement = sa.update(alert_rules).where(alert_rules.c.name == name)
    conn.execute(statement.values(**given, version=raised, updated_ms=now_ms))


def drop(conn: Connection, name: str, raised: int) -> None:
    """Remove a rule, or give a built-in one that was taken over its own form again."""
    original = builtin_rules.by_name(name)
    if original is not None:
        update(conn, name, original, raised)
        return
    conn.execute(sa.delete(alert_rules).where(alert_rules.c.name == name))


def audited(rule: Rule) -> dict[str, Any]:
    return {**rule_form.to_form(rule), "owner": rule.owner}


def body_of(rule: Rule) -> dict[str, Any]:
    form = rule_form.to_form(rule)
    return {key: value for key, value in form.items() if key not in ("name", "enabled")}


def stored_rule(row: Any) -> StoredRule:
    rule, fault = None, ""
    form = {"name": row.name, **row.body, "enabled": bool(row.enabled)}
    try:
        rule = replace(rule_form.parse(form, row.owner), id=row.id)
    except errors.InvalidInput as error:
        fault = f"{error.message}; this release cannot use the rule"
    return StoredRule(
        name=row.name,
        owner=row.owner,
        enabled=bool(row.enabled),
        body=row.body,
        version=row.version,
        updated_ms=row.updated_ms,
        rule=rule,
        fault=fault,
    )


ALL = sa.select(alert_rules).order_by(alert_rules.c.name)
