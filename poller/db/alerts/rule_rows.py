"""Rules in SQL. Every change raises the version of all rules, in its own transaction.

Workers and the leader keep the rules in memory, and load them again when the version differs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts.rules import rule_statements as rows
from poller.db.alerts.rules.rule_statements import FILE, StoredRule
from poller.domain.access import audit_entry
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.rule import Rule
from poller.domain.alerts.rules import builtin_rules
from poller.domain.inventory import row_tag


@dataclass(frozen=True, slots=True)
class StoredRules:
    """All rules that can be read, in the order of names; those that are disabled too."""

    version: int
    rules: tuple[Rule, ...]

    @property
    def enabled(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.enabled)

    @property
    def judged_by_workers(self) -> tuple[Rule, ...]:
        """The enabled rules whose condition a worker judges at the end of a poll."""
        return tuple(rule for rule in self.enabled if rule.is_judged_by_workers)


def version(engine: Engine) -> int:
    """Return the number of the last change of rules. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return rows.read_version(conn)


def load(engine: Engine) -> StoredRules:
    """Return all rules with their version, as of one instant. Raises StoreError."""
    with sql.reading(engine) as conn:
        found = [rows.stored_rule(row).rule for row in conn.execute(rows.ALL)]
        usable = tuple(rule for rule in found if rule is not None)
        return StoredRules(rows.read_version(conn), usable)


def listing(engine: Engine) -> list[StoredRule]:
    """Return every row, in the order of names. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return [rows.stored_rule(row) for row in conn.execute(rows.ALL)]


def show(engine: Engine, name: str) -> StoredRule:
    """Return one rule. Raises NotFound with the nearest name."""
    with sql.reading(engine) as conn:
        return rows.one(conn, name)


def add(engine: Engine, rule: Rule, actor: Actor) -> StoredRule:
    """Store a new rule. Raises AlreadyExists, InvalidInput if there are too many."""
    with sql.writing(engine) as conn:
        raised = rows.raise_version(conn)
        taken = rows.find(conn, rule.name)
        if taken is not None:
            raise errors.AlreadyExists(
                f'a rule "{rule.name}" exists, owner {taken.owner}',
                hint=f"poller rules edit {rule.name}, or choose another name",
            )
        rows.refuse_too_many(conn, 1)
        rows.insert(conn, rule, raised)
        entry = AuditEntry("rule.add", rule.name, after=rows.audited(rule))
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return rows.one(conn, rule.name)


def edit(
    engine: Engine, name: str, rule: Rule, actor: Actor, expected: str | None = None
) -> StoredRule:
    """Replace a rule; its id stays, so its marks and alerts go on. `rule.owner` is the new owner.

    Raises NotFound, AlreadyExists for a new name that is taken, EditConflict, InvalidInput for a
    rule of a file.
    """
    with sql.writing(engine) as conn:
        raised = rows.raise_version(conn)
        old = rows.one(conn, name)
        row_tag.refuse_changed("rule", name, old.tag, expected)
        _refuse_of_file(old)
        if rule.name != name and rows.find(conn, rule.name) is not None:
            raise errors.AlreadyExists(f'a rule "{rule.name}" exists', hint="choose another name")
        rows.update(conn, name, rule, raised)
        before = {**old.form, "owner": old.owner}
        entry = audit_entry.differing("rule.edit", name, before, rows.audited(rule))
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return rows.one(conn, rule.name)


def enable(engine: Engine, names: Collection[str], enabled: bool, actor: Actor) -> list[str]:
    """Enable or disable rules, all or none. Return those that were changed.

    Raises NotFound, InvalidInput for a rule of a file.
    """
    with sql.writing(engine) as conn:
        raised = rows.raise_version(conn)
        found = [rows.one(conn, name) for name in dict.fromkeys(names)]
        for each in found:
            _refuse_of_file(each)
        changed = [each.name for each in found if each.enabled != enabled]
        for name in changed:
            rows.set_fields(conn, name, {"enabled": enabled}, raised)
        verb = "enable" if enabled else "disable"
        entries = [AuditEntry(f"rule.{verb}", name) for name in changed]
        audit_rows.append(conn, actor, entries, database_clock.read_ms(conn))
        return changed


def remove(engine: Engine, name: str, actor: Actor, expected: str | None = None) -> bool:
    """Remove a rule. True: it had the name of a built-in rule, which is back as it was made.

    Raises NotFound, EditConflict, InvalidInput for a built-in rule that nobody changed.
    """
    with sql.writing(engine) as conn:
        raised = rows.raise_version(conn)
        old = rows.one(conn, name)
        row_tag.refuse_changed("rule", name, old.tag, expected)
        if old.owner == builtin_rules.OWNER:
            raise errors.InvalidInput(
                f'rule "{name}" is built in: it would come back with the next upgrade',
                hint=f"poller rules disable {name}",
            )
        original = builtin_rules.by_name(name)
        rows.drop(conn, name, raised)
        entry = AuditEntry("rule.remove", name, before={**old.form, "owner": old.owner})
        audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return original is not None


def _refuse_of_file(old: StoredRule) -> None:
    """Raise InvalidInput for a rule whose truth is a file: the file would undo the change."""
    if not old.owner.startswith(FILE):
        return
    path = old.owner.removeprefix(FILE)
    raise errors.InvalidInput(
        f'rule "{old.name}" is kept in {path}; nothing was changed',
        hint=f"change the file, then: poller rules apply {path}",
    )
