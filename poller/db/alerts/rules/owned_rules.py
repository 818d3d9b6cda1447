"""All rules of one owner at once: those of a file, and those that are built in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts.rules import rule_statements as rows
from poller.db.alerts.rules.rule_statements import StoredRule
from poller.domain.access import audit_entry
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.rule import Rule
from poller.domain.alerts.rules import builtin_rules


@dataclass(frozen=True, slots=True)
class Replaced:
    """The result of a change of all rules of an owner: the names of each kind."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0


def replace_owned(engine: Engine, owner: str, given: Sequence[Rule], actor: Actor) -> Replaced:
    """Make these rules all the rules of an owner: add, change and remove what differs.

    Raises InvalidInput for the name of a rule of another owner, and changes nothing then; rules
    that are built in can be taken over by any owner.
    Nothing is written, and the version stays, if nothing differs.
    """
    wanted = [replace(rule, owner=owner) for rule in given]
    if not _differs(engine, owner, wanted):
        return Replaced(unchanged=len(wanted))
    with sql.writing(engine) as conn:
        raised = rows.raise_version(conn)
        stored = {each.name: each for each in map(rows.stored_rule, conn.execute(rows.ALL))}
        _refuse_foreign(stored, owner, wanted)
        names = {rule.name for rule in wanted}
        removed = [each.name for each in stored.values() if each.owner == owner]
        removed = [name for name in removed if name not in names]
        added = [rule for rule in wanted if rule.name not in stored]
        changed = [rule for rule in wanted if _is_changed(stored.get(rule.name), rule)]
        rows.refuse_too_many(conn, len(added) - len(removed))
        for name in removed:
            rows.drop(conn, name, raised)
        for rule in added:
            rows.insert(conn, rule, raised)
        for rule in changed:
            rows.update(conn, rule.name, rule, raised)
        entries = [
            *(AuditEntry("rule.remove", name, before=stored[name].form) for name in removed),
            *(AuditEntry("rule.add", rule.name, after=rows.audited(rule)) for rule in added),
            *(_edit_entry(stored[rule.name], rule) for rule in changed),
        ]
        audit_rows.append(conn, actor, entries, database_clock.read_ms(conn))
    return Replaced(
        tuple(rule.name for rule in added),
        tuple(rule.name for rule in changed),
        tuple(removed),
        len(wanted) - len(added) - len(changed),
    )


def install_builtin(conn: Connection) -> None:
    """Add the built-in rules of this release, and bring unchanged ones up to date. Idempotent.

    A rule that people took over is left as it is, and whether a rule is enabled is theirs.
    """
    stored = {each.name: each for each in map(rows.stored_rule, conn.execute(rows.ALL))}
    own = [rule for rule in builtin_rules.rules() if _is_outdated(stored.get(rule.name), rule)]
    if not own:
        return
    raised = rows.raise_version(conn)
    for rule in own:
        old = stored.get(rule.name)
        if old is None:
            rows.insert(conn, rule, raised)
        else:
            rows.update(conn, rule.name, replace(rule, enabled=old.enabled), raised)


def _is_outdated(old: StoredRule | None, rule: Rule) -> bool:
    return old is None or (old.owner == builtin_rules.OWNER and old.body != rows.body_of(rule))


def _differs(engine: Engine, owner: str, wanted: Sequence[Rule]) -> bool:
    """Whether the stored rules of an owner are others than these."""
    with sql.single_read(engine) as conn:
        stored = [rows.stored_rule(row) for row in conn.execute(rows.ALL)]
    own = {each.name: each for each in stored if each.owner == owner}
    if own.keys() != {rule.name for rule in wanted}:
        return True
    return any(_is_changed(own[rule.name], rule) for rule in wanted)


def _is_changed(old: StoredRule | None, rule: Rule) -> bool:
    if old is None:
        return False
    return (old.body, old.enabled, old.owner) != (rows.body_of(rule), rule.enabled, rule.owner)


def _refuse_foreign(stored: Mapping[str, StoredRule], owner: str, wanted: Sequence[Rule]) -> None:
    allowed = (owner, builtin_rules.OWNER)
    for rule in wanted:
        old = stored.get(rule.name)
        if old is None or old.owner in allowed:
            continue
        raise errors.InvalidInput(
            f'name: rule "{rule.name}" belongs to {old.owner}',
            hint=f"rename it, or remove the other one: poller rules rm {rule.name}",
            field="name",
        )


def _edit_entry(old: StoredRule, rule: Rule) -> AuditEntry:
    before = {**old.form, "owner": old.owner}
    return audit_entry.differing("rule.edit", rule.name, before, rows.audited(rule))
