"""The way back of an act on many: the rows that it changed get the values that they had before.

What an act changed is kept for an hour. A row that somebody else changed meanwhile is left alone.
"""

from __future__ import annotations

import enum
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import bulk_edits, devices, targets
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.inventory import duration
from poller.presentation import formatting
from poller.service.fleet.fleet_plan import Action, FleetDone, FleetPlan, Tell, actor_of
from poller.service.inventory import collector_checks, device_actions
from poller.service.operations import breaker_actions, target_choice
from poller.state.board.breakers import Breakers
from poller.state.requests import kept_acts

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Rows whose values are kept: more cannot be taken back by a button.
MOST = 10_000
TOO_MANY = "These are too many: no button takes that back."


class Field(enum.StrEnum):
    """The kind of a change: a field of devices, the interval of targets, or a pause."""

    ENABLED = "enabled"
    TAGS = "tags"
    CREDENTIAL = "credential"
    REQUIRES = "requires"
    INTERVAL = "interval"
    PAUSE = "pause"

    @property
    def noun(self) -> str:
        return "target" if self in (Field.INTERVAL, Field.PAUSE) else "device"

    @property
    def scope(self) -> Scope:
        return Scope.OPERATE if self is Field.PAUSE else Scope.INVENTORY


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that had the same value before an act, and have the same after it."""

    before: Any
    after: Any
    ids: list[int]


def values(services: Services, field: Field, ids: Sequence[int]) -> dict[int, Any]:
    """Return the present values of rows, as JSON has them. Raises StoreError."""
    if not ids:
        return {}
    if field is Field.PAUSE:
        shown = Breakers(services.board).show(ids, services.board.now_ms())
        return {key: each.opening.since_ms if each.opening else 0 for key, each in shown.items()}
    if field is Field.INTERVAL:
        found = targets.listing(services.engine, ids=ids, limit=None)
        return {row.id: row.interval_ms for row in found}
    rows = devices.listing(services.engine, ids=ids, limit=None)
    return {row.id: _plain(getattr(row, field.value)) for row in rows}


def groups(before: Mapping[int, Any], after: Callable[[Any], Any]) -> list[Group]:
    """Return the rows that an act changes, in groups of equal values."""
    found: dict[str, Group] = {}
    for key, value in before.items():
        new = _plain(after(value))
        if new != value:
            name = json.dumps([value, new], sort_keys=True)
            found.setdefault(name, Group(value, new, [])).ids.append(key)
    return list(found.values())


def keep(services: Services, actor: Actor, field: Field, changed: Sequence[Group]) -> str:
    """Keep what an act changed. Return the name of the record; "" if nothing was changed."""
    if not changed:
        return ""
    name = secrets.token_hex(16)
    record = {
        "field": field.value,
        "site": actor.site,
        "groups": [[each.before, each.after, each.ids] for each in changed],
    }
    try:
        kept_acts.keep_undo(services.redis, services.keys, name, record)
    except errors.StoreError:
        return ""  # the act is done; only its button is missing
    return name


def keep_pause(services: Services, actor: Actor, ids: Sequence[int], since_ms: int) -> str:
    """Keep which targets were paused at an instant. Too many cannot be taken back."""
    few = [Group(0, since_ms, list(ids))] if len(ids) <= MOST else []
    return keep(services, actor, Field.PAUSE, few)


def plan(services: Services, author: Author, name: str) -> FleetPlan:
    """Plan the way back. Raises NotFound for a record that is over or unknown, NotAllowed.

    Rows that were changed again are left alone.
    """
    actor = actor_of(author)
    field, changed = _read(services, actor, name)
    actor.require(field.scope)
    every = [key for group in changed for key in group.ids]
    now = values(services, field, every)
    back = [_still(group, now) for group in changed]
    number = sum(len(group.ids) for group in back)
    if not number:
        raise errors.NotFound("every one of them was changed again, or is gone")
    others = len(every) - number
    notes = []
    if others:
        were = "was" if others == 1 else "were"
        text = f"{formatting.exact(others)} {were} changed again or removed, and are left alone."
        notes.append(text)

    def carry_out(tell: Tell) -> FleetDone:
        done = 0
        for group in back:
            if group.ids:
                _restore(services, author, field, group)
                done += len(group.ids)
                tell(done)
        return FleetDone(f"{formatting.counted(number, field.noun)} taken back.")

    counted = formatting.counted(number, field.noun)
    phrase = f"take back the change of {counted}"
    if field is Field.PAUSE:
        phrase = f"resume {counted}"
    names = _names(services, field, [key for group in back for key in group.ids])
    return FleetPlan(Action.UNDO, phrase, names, carry_out, notes)


def _read(services: Services, actor: Actor, name: str) -> tuple[Field, list[Group]]:
    record = kept_acts.undo(services.redis, services.keys, name[:64])
    if record is None or actor.site not in (None, record["site"]):
        raise errors.NotFound("this cannot be taken back any more", hint="it is kept for an hour")
    return Field(record["field"]), [Group(*each) for each in record["groups"]]


def _still(group: Group, now: Mapping[int, Any]) -> Group:
    """The rows of a group that are as the act left them."""
    ids = [key for key in group.ids if key in now and now[key] == group.after]
    return Group(group.before, group.after, ids)


def _restore(services: Services, author: Author, field: Field, group: Group) -> None:
    subject = f"{formatting.counted(len(group.ids), field.noun)} taken back"
    if field is Field.PAUSE:
        actor = actor_of(author)
        chosen = target_choice.with_ids(services, actor, group.ids)
        breaker_actions.reset(services, actor, chosen, subject)
        return
    if field is Field.INTERVAL:
        fields = {"interval": duration.format_ms(group.before)}
        draft_of = partial(collector_checks.target_changes, services, fields, None)
        bulk_edits.edit_targets(services.engine, group.ids, draft_of, author, subject)
        return
    value = group.before
    if field is Field.REQUIRES:
        value = [f"{key}={text}" for key, text in value.items()]
    draft = device_actions.check_many(services, author, {field.value: value})
    bulk_edits.edit_devices(services.engine, group.ids, draft, None, author, subject)


def _names(services: Services, field: Field, ids: Sequence[int]) -> list[str]:
    if field.noun == "target":
        return [each.full_name for each in targets.listing(services.engine, ids=ids, limit=None)]
    return [row.name for row in devices.listing(services.engine, ids=ids, limit=None)]


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
