"""Acts on many devices that change the inventory: switches, interval, tags, credential, domain.

Each can be taken back, exactly for those that it changed: their values are kept for an hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import duration, tag_change
from poller.domain.inventory.tag_change import TagChange
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet import act_undo
from poller.service.fleet.act_undo import Field
from poller.service.fleet.fleet_plan import Action, FleetDone, FleetPlan, Tell, actor_of
from poller.service.inventory import device_bulk, target_bulk
from poller.service.inventory.bulk_plan import BulkPlan

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class _Edit:
    """A change of one field: its new value, or the tags to add and to remove."""

    field: Field
    noun: str
    phrase: str  # `disable {}`: the number of devices comes into the braces
    fields: Mapping[str, Any]
    value: Any = None
    tags: TagChange | None = None

    def after(self, before: Any) -> Any:
        """The value of a row after the change."""
        return self.tags.applied_to(before) if self.tags else self.value


def plan(
    services: Services,
    author: Author,
    action: Action,
    wanted: TargetFilter,
    fields: Mapping[str, str],
) -> FleetPlan:
    """Plan a change. Raises InvalidInput, which names the field, NotFound, NotAllowed."""
    edit = _edit(action, fields)
    planned = _planned(services, author, wanted, edit)
    counted = formatting.counted(len(planned.names), edit.noun)

    def carry_out(tell: Tell) -> FleetDone:
        changes = _changes(services, edit, planned.ids)
        planned.carry_out()
        tell(len(planned.ids))
        return _done(services, author, edit, planned, changes)

    notes = [*_notes(_changes(services, edit, planned.ids), edit, planned), *planned.notes]
    return FleetPlan(action, edit.phrase.format(counted), planned.names, carry_out, notes)


def _planned(services: Services, author: Author, wanted: TargetFilter, edit: _Edit) -> BulkPlan:
    if edit.field is Field.INTERVAL:
        return target_bulk.plan_edit(services, author, wanted, edit.fields)
    return device_bulk.plan_edit(services, author, wanted, edit.fields, edit.tags)


def _edit(action: Action, fields: Mapping[str, str]) -> _Edit:
    """The change of an act. Raises InvalidInput, which names the field."""
    if action in (Action.ENABLE, Action.DISABLE):
        enabled = action is Action.ENABLE
        change = {"enabled": enabled}
        return _Edit(Field.ENABLED, "device", f"{action} {{}}", change, enabled)
    if action is Action.INTERVAL:
        return _interval(fields.get("interval", ""))
    if action is Action.TAGS:
        return _tags(fields.get("add", "").split(), fields.get("remove", "").split())
    if action is Action.CREDENTIAL:
        return _credential(fields.get("credential", ""))
    return _domain(fields.get("requires", "").split())


def _interval(text: str) -> _Edit:
    with errors.of_field("interval"):
        interval_ms = duration.interval_ms(text)
    shown = duration.format_ms(interval_ms)
    phrase = f"poll {{}} every {shown}"
    return _Edit(Field.INTERVAL, "target", phrase, {"interval": shown}, interval_ms)


def _tags(add: Sequence[str], remove: Sequence[str]) -> _Edit:
    with errors.of_field("add"):
        change = tag_change.checked(None, add, remove)
    if change is None:
        raise errors.InvalidInput(
            "add: there is no tag to add or to remove", hint="type at least one", field="add"
        )
    verbs = [("add", change.add), ("remove", change.remove)]
    parts = [f"{verb} {' '.join(tags)}" for verb, tags in verbs if tags]
    phrase = f"change the tags of {{}}: {', '.join(parts)}".replace("{", "{{").replace("}", "}}")
    return _Edit(Field.TAGS, "device", phrase.replace("{{}}", "{}", 1), {}, tags=change)


def _credential(name: str) -> _Edit:
    given = name.replace("{", "{{").replace("}", "}}")
    phrase = f"give {{}} the credential {given}" if name else "take the credential from {}"
    return _Edit(Field.CREDENTIAL, "device", phrase, {"credential": name}, name)


def _domain(words: Sequence[str]) -> _Edit:
    for word in words:
        key, _, text = word.partition("=")
        if not (key and text):
            raise errors.InvalidInput(
                f'requires: "{word[:60]}" is not KEY=VALUE', hint="zone=dmz", field="requires"
            )
    value = dict(word.split("=", 1) for word in words)
    given = " ".join(words).replace("{", "{{").replace("}", "}}")
    phrase = f"let {{}} be polled by workers with {given}" if words else "let any worker poll {}"
    return _Edit(Field.REQUIRES, "device", phrase, {"requires": list(words)}, value)


def _changes(services: Services, edit: _Edit, ids: Sequence[int]) -> list[act_undo.Group] | None:
    """The effect on rows that are not as the change wants them; None: they are too many."""
    if len(ids) > act_undo.MOST:
        return None
    before = act_undo.values(services, edit.field, ids)
    return act_undo.groups(before, edit.after)


def _notes(changes: list[act_undo.Group] | None, edit: _Edit, planned: BulkPlan) -> list[str]:
    if changes is None:
        return [act_undo.TOO_MANY]
    changing = sum(len(group.ids) for group in changes)
    unchanged = len(planned.ids) - changing
    found = [f"{formatting.counted(changing, edit.noun)} {_verb(changing)}."]
    if unchanged:
        are = "is" if unchanged == 1 else "are"
        found.append(f"{formatting.exact(unchanged)} {are} so already.")
    found.append("It can be taken back for an hour, exactly for those that change.")
    return found


def _verb(number: int) -> str:
    return "changes" if number == 1 else "change"


def _done(
    services: Services,
    author: Author,
    edit: _Edit,
    planned: BulkPlan,
    changes: list[act_undo.Group] | None,
) -> FleetDone:
    if changes is None:
        return FleetDone(f"{formatting.counted(len(planned.ids), edit.noun)} changed.")
    changed = sum(len(group.ids) for group in changes)
    text = f"{formatting.counted(changed, edit.noun)} {_past(edit)}"
    same = len(planned.ids) - changed
    if same:
        text += f"; {formatting.exact(same)} were so before"
    undo = act_undo.keep(services, actor_of(author), edit.field, changes)
    return FleetDone(f"{text}.", undo=undo)


def _past(edit: _Edit) -> str:
    if edit.field is Field.ENABLED:
        return "enabled" if edit.value else "disabled"
    return "changed"
