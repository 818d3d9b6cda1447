"""Actions on alert rules: list, show, add, edit, enable, disable, remove, check, apply a file.

Rules concern every site, so a token of one site may not change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.beat.alerts import rule_file
from poller.beat.alerts.rule_file_watch import WAKE
from poller.db.alerts import rule_rows
from poller.db.alerts.rules import announced_shapes
from poller.db.alerts.rules.owned_rules import Replaced
from poller.db.alerts.rules.rule_statements import StoredRule
from poller.db.record import event_rows
from poller.domain.access.actor import Actor
from poller.domain.alerts import rule_form
from poller.domain.alerts.rule import Rule
from poller.domain.alerts.rules import rule_warnings
from poller.domain.alerts.rules.rule_warnings import KnownSeries
from poller.domain.inventory import did_you_mean, target_filter
from poller.domain.inventory.target_filter import ANY
from poller.domain.record.event_kinds import EventFilter, Kind
from poller.service.selection import match_count

if TYPE_CHECKING:
    from poller.bootstrap import Services

_FILE_EVENTS = (Kind.RULE_FILE_APPLIED, Kind.RULE_FILE_REFUSED)
_MOST_FILE_EVENTS = 500
_NOT_WOKEN = "the scheduler was not notified (Redis is not reachable); it reads rules every 30 s"


@dataclass(frozen=True, slots=True)
class Saved:
    """A rule that was stored, and what looks wrong in it."""

    stored: StoredRule
    warnings: Sequence[str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The changes of a file of rules, and the warnings by rule."""

    path: str
    done: Replaced
    warnings: Mapping[str, Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that can be applied, and what looks wrong in each of its rules."""

    rules: int
    warnings: Mapping[str, Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file of rules that the leader refused, and has not applied since."""

    path: str
    fault: str
    at_ms: int


def listing(services: Services, actor: Actor) -> list[StoredRule]:
    """Return every rule, by name. Raises NotAllowed, StoreError."""
    actor.require_every_site()
    return rule_rows.listing(services.engine)


def show(services: Services, actor: Actor, name: str) -> StoredRule:
    """Return one rule. Raises NotFound with the nearest name, NotAllowed, StoreError."""
    actor.require_every_site()
    return rule_rows.show(services.engine, name)


def add(services: Services, actor: Actor, form: Any) -> Saved:
    """Store a new rule. Raises InvalidInput, which names the field, AlreadyExists."""
    actor.require_every_site()
    rule = rule_form.parse(form, actor.name)
    stored = rule_rows.add(services.engine, rule, actor)
    return Saved(stored, warnings(services, rule), _wake(services))


def edit(
    services: Services,
    actor: Actor,
    name: str,
    changes: Mapping[str, Any],
    expected: str | None = None,
) -> Saved:
    """Change the given fields of a rule, which then belongs to the actor.

    A field that is None gets its default again. To enable or disable a rule takes nobody's place.
    Raises InvalidInput, NotFound, AlreadyExists, EditConflict.
    """
    actor.require_every_site()
    old = rule_rows.show(services.engine, name)
    is_switch = changes.keys() <= {"enabled"}
    owner = old.owner if is_switch else actor.name
    rule = rule_form.parse({**old.form, **changes}, owner)
    stored = rule_rows.edit(services.engine, name, rule, actor, expected or old.tag)
    return Saved(stored, warnings(services, rule), _wake(services))


def enable(
    services: Services, actor: Actor, names: Sequence[str], enabled: bool
) -> tuple[list[str], str]:
    """Enable or disable rules, all or none. Return those that were changed, and a note."""
    actor.require_every_site()
    changed = rule_rows.enable(services.engine, names, enabled, actor)
    return changed, _wake(services)


def remove(
    services: Services, actor: Actor, name: str, expected: str | None = None
) -> tuple[bool, str]:
    """Remove a rule. True: the built-in rule of this name is back; and a note.

    Raises NotFound, EditConflict, InvalidInput for a built-in rule.
    """
    actor.require_every_site()
    is_back = rule_rows.remove(services.engine, name, actor, expected)
    return is_back, _wake(services)


def apply(services: Services, actor: Actor, path: str | Path) -> Applied:
    """Make the rules of a file all the rules of that file. Raises InvalidInput, StoreError."""
    actor.require_every_site()
    file = rule_file.read(path)
    done = rule_file.apply(services.engine, file, actor)
    note = _wake(services) if done.added or done.changed or done.removed else ""
    return Applied(file.path, done, warnings_of(services, file.rules), note)


def check(services: Services, actor: Actor, given: Any) -> dict[str, list[str]]:
    """Check a document of rules and save nothing. Return the warnings of each rule.

    Raises InvalidInput with the place of the first error.
    """
    actor.require_every_site()
    return warnings_of(services, rule_form.parse_all(given))


def check_file(services: Services, path: str | Path) -> CheckedFile:
    """Check a file of rules and save nothing. A database is not needed. Raises InvalidInput."""
    rules = rule_file.read(path).rules
    try:
        return CheckedFile(len(rules), warnings_of(services, rules))
    except (errors.StoreError, errors.SchemaMismatch) as error:
        note = f"metrics, labels and filters were not compared with what exists: {error.message}"
        return CheckedFile(len(rules), {}, note)


def warnings_of(services: Services, rules: Sequence[Rule]) -> dict[str, list[str]]:
    """Return what looks wrong in each of these rules; [] for those that look well."""
    known = _known(services)
    return {rule.name: _warnings(services, rule, known) for rule in rules}


def warnings(services: Services, rule: Rule) -> list[str]:
    """Return what looks wrong in a rule that can be saved."""
    return _warnings(services, rule, _known(services))


def chosen(services: Services, actor: Actor, name: str, path: str = "") -> Rule:
    """Return the stored rule of a name, or that of a file. Raises NotFound, InvalidInput."""
    actor.require_every_site()
    if path:
        rules = {rule.name: rule for rule in rule_file.read(path).rules}
        did_you_mean.refuse_unknown(f"rule in {path}", name, rules, f"it has {', '.join(rules)}")
        return rules[name]
    stored = rule_rows.show(services.engine, name)
    if stored.rule is None:
        raise errors.InvalidInput(stored.fault, hint=f"poller rules edit {name}")
    return stored.rule


def refused_files(services: Services) -> list[RefusedFile]:
    """Return the files that the leader could not apply, and why. Raises StoreError."""
    wanted = EventFilter(_FILE_EVENTS)
    newest: dict[str, RefusedFile | None] = {}
    for event in event_rows.recent(services.engine, wanted, _MOST_FILE_EVENTS):
        path = str(event.data.get("file", ""))
        is_refused = event.kind is Kind.RULE_FILE_REFUSED
        fault = str(event.data.get("fault", ""))
        newest.setdefault(path, RefusedFile(path, fault, event.at_ms) if is_refused else None)
    return [each for each in newest.values() if each is not None]


def _known(services: Services) -> KnownSeries:
    return rule_warnings.known_series(announced_shapes.newest(services.engine))


def _warnings(services: Services, rule: Rule, known: KnownSeries) -> list[str]:
    found = rule_warnings.warnings(rule, known)
    fault = _where_fault(services, rule)
    return [*found, fault] if fault else found


def _where_fault(services: Services, rule: Rule) -> str:
    """Return what looks wrong in the filter of a rule; "" if it matches something."""
    if rule.where == ANY:
        return ""
    try:
        count = match_count.count_targets(services, rule.where)
    except errors.InvalidInput as error:
        hint = f"; {error.hint}" if error.hint else ""
        return f"where: {error.message}{hint}"
    if count.number or not count.is_exact:
        return ""
    return f"where: no target matches {target_filter.text(rule.where)} now"


def _wake(services: Services) -> str:
    """Wake the leader, which tells the workers. Return a note if that was not possible."""
    try:
        services.board.wake(WAKE)
    except errors.StoreError:
        return _NOT_WOKEN
    return ""
