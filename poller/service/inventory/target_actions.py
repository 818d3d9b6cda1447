"""Actions on one target: list, show, add, edit, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller.db.inventory import targets
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.inventory.draft import TargetDraft
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit, target_selection
from poller.service.inventory import collector_checks, device_actions, option_secrets
from poller.service.selection import target_page

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class TargetPage:
    """Targets by device and name; `last` is the position to go on after, None at the end."""

    targets: Sequence[Target]
    last: Position | None


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A target after its change, and what may be forgotten."""

    target: Target
    notes: Sequence[str] = ()


def page(
    services: Services,
    actor: Actor,
    wanted: TargetFilter,
    limit: int,
    after: Position | None = None,
    *,
    fill: bool = False,
) -> TargetPage:
    """Return the next targets that match and that the actor may see.

    A page may have fewer rows than the limit, though more match: a request looks at a bounded part
    of the fleet. `fill` goes on until the page is full. Raises UnknownName for an unknown site or
    collector, NotAllowed for a filter of other sites.
    """
    limited = site_limit.limited(actor, wanted)
    position = after
    ids: list[int] = []
    while True:
        found = target_page.target_page(services, limited, position, limit - len(ids))
        ids += [target.id for target in found.targets]
        position = found.next
        if position is None or len(ids) >= limit or not fill:
            break
    by_id = {row.id: row for row in targets.listing(services.engine, ids=ids, limit=None)}
    rows = [by_id[key] for key in ids if key in by_id]
    return TargetPage(option_secrets.shown_list(rows, actor), position)


def of_device(services: Services, actor: Actor, device: str, wanted: TargetFilter) -> list[Target]:
    """Return the targets of one device that match. Raises NotFound, NotAllowed."""
    site_limit.visible_device(services, actor, device)
    found = option_secrets.shown_list(targets.of_device(services.engine, device), actor)
    if wanted.is_empty:
        return found
    limited = site_limit.limited(actor, wanted)
    matching = {target.id for target in target_selection.select_targets(services, limited)}
    return [target for target in found if target.id in matching]


def show(services: Services, actor: Actor | None, device: str, name: str) -> Target:
    """Return one target. Raises NotFound, also for a device that is not visible."""
    return option_secrets.shown(_stored(services, actor, device, name), actor)


def _stored(services: Services, actor: Actor | None, device: str, name: str) -> Target:
    site_limit.visible_device(services, actor, device)
    return targets.show(services.engine, device, name)


def show_by_id(services: Services, actor: Actor, target_id: int) -> Target:
    """Return one target by its id. Raises NotFound, also for one that is not visible."""
    return option_secrets.shown(site_limit.visible_target(services, actor, target_id), actor)


def add(services: Services, author: Author, device: str, fields: Mapping[str, Any]) -> TargetChange:
    """Add a target to a device. Raises InvalidInput, NotFound, AlreadyExists, NotAllowed."""
    draft, notes = check_add(services, author, device, fields)
    added = targets.add(services.engine, device, draft, author)
    return TargetChange(option_secrets.shown(added, author.actor), notes)


def check_add(
    services: Services, author: Author, device: str, fields: Mapping[str, Any]
) -> tuple[TargetDraft, list[str]]:
    """Return a checked new target of a device, and notes. Changes nothing."""
    actor = author.actor
    own = fields.get("credential")
    site_limit.require_credential(services, author, own)
    used = own or site_limit.visible_device(services, actor, device).credential
    return collector_checks.new_target(services, fields, [used])


def edit(
    services: Services,
    author: Author,
    device: str,
    name: str,
    fields: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    expected: str | None = None,
) -> TargetChange:
    """Change the given fields of a target. An option that is None is removed; others stay.

    Raises InvalidInput, NotFound, AlreadyExists (new name), NotAllowed, EditConflict if the target
    is not the expected version.
    """
    draft = check_edit(services, author, device, name, fields, options)
    changed = targets.edit(services.engine, device, name, draft, author, expected)
    notes: list[str] = []
    if options is not None:
        notes = collector_checks.cautions(services.registry, changed.collector, changed.options)
    return TargetChange(option_secrets.shown(changed, author.actor), notes)


def check_edit(
    services: Services,
    author: Author,
    device: str,
    name: str,
    fields: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> TargetDraft:
    """Return a checked edit of a target. Changes nothing."""
    device_actions.refuse_nothing("target", fields, options)
    old = _stored(services, author.actor, device, name)
    credential = fields.get("credential")
    site_limit.require_credential(services, author, credential)
    collector_checks.check_credential(services, credential, old.collector)
    return collector_checks.target_changes(services, fields, options, old.collector, old.options)


def remove(
    services: Services, author: Author, device: str, name: str, expected: str | None = None
) -> None:
    """Remove a target. Raises NotFound, EditConflict if it is not the expected version."""
    site_limit.visible_device(services, author.actor, device)
    targets.remove(services.engine, device, name, author, expected)
