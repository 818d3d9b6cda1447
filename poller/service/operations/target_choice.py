"""The targets that an action is for: by name, by id or by filter, within the actor's site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from poller import errors
from poller.db.inventory import filter_conditions, targets
from poller.db.inventory.filter_conditions import SelectedTarget
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit, target_selection
from poller.service.inventory import bulk_plan

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services

#: A device and one of its targets; None: all of them.
Named = tuple[str, str | None]


class Chosen(NamedTuple):
    """A target that was chosen."""

    id: int
    device: str
    name: str
    collector: str
    enabled: bool  # the target and its device
    device_id: int
    address: str

    @property
    def full_name(self) -> str:
        return f"{self.device}/{self.name}"


Choice = Mapping[int, Chosen]


def named(services: Services, actor: Actor, pairs: Sequence[Named]) -> dict[int, Chosen]:
    """Return the named targets by id, in the order of the names.

    Raises NotFound for an unknown name, a device without targets, and a device of another site.
    """
    ids: dict[int, None] = {}
    for device, name in pairs:
        if actor.site is not None:
            site_limit.visible_device(services, actor, device)
        for target in of_device(services.engine, device, name):
            ids[target.id] = None
    rows = {row.id: row for row in filter_conditions.targets_by_id(services.engine, list(ids))}
    return {target_id: of_row(rows[target_id]) for target_id in ids if target_id in rows}


def of_device(engine: Engine, device: str, name: str | None) -> list[Target]:
    """Return the named target of a device, or all of them. Raises NotFound if there is none."""
    if name is not None:
        return [targets.show(engine, device, name)]
    found = targets.of_device(engine, device)
    if not found:
        raise no_target(device)
    return found


def no_target(device: str) -> errors.NotFound:
    """Return the error for a device without any target."""
    return errors.NotFound(
        f'device "{device}" has no target', hint=f"poller target add {device} --collector snmp"
    )


def with_ids(services: Services, actor: Actor, ids: Sequence[int]) -> dict[int, Chosen]:
    """Return the targets with these ids, in their order.

    Raises NotFound for the first id without a target, or with one of another site.
    """
    rows = filter_conditions.targets_by_id(services.engine, ids, actor.site)
    by_id = {row.id: row for row in rows}
    for target_id in ids:
        if target_id not in by_id:
            raise errors.NotFound(f"no target with the id {target_id}", hint="poller target list")
    return {target_id: of_row(by_id[target_id]) for target_id in ids}


def with_id(services: Services, actor: Actor, target_id: int) -> Chosen:
    """Return one target. Raises NotFound, also for a target of another site."""
    return with_ids(services, actor, [target_id])[target_id]


def matching(services: Services, actor: Actor, wanted: TargetFilter) -> dict[int, Chosen]:
    """Return the targets that match, by device and name. Raises NotFound if there is none."""
    found = bulk_plan.matching_targets(services, actor, wanted)
    return {target.id: of_row(target) for target in found}


def visible_ids(services: Services, actor: Actor, wanted: TargetFilter | None) -> set[int] | None:
    """Return the ids of the targets that match and that the actor may see; None: all targets."""
    limited = site_limit.limited(actor, wanted or TargetFilter())
    if limited.is_empty:
        return None
    return {target.id for target in target_selection.select_targets(services, limited)}


def full_names(chosen: Iterable[Chosen]) -> list[str]:
    """Return the names as `DEVICE/TARGET`."""
    return [each.full_name for each in chosen]


def refuse_absent(chosen: Choice, present: Iterable[int]) -> None:
    """Raise NotFound if the board holds none of the targets."""
    if not any(True for _ in present):
        first = next(iter(chosen.values()))
        raise errors.NotFound(
            f'target "{first.full_name}" is not on the board',
            "it is disabled, or no scheduler has run since it was added",
            "poller status",
        )


def of_row(row: SelectedTarget) -> Chosen:
    """Return a row of the inventory as a chosen target."""
    return Chosen(
        id=row.id,
        device=row.device,
        name=row.name,
        collector=row.collector,
        enabled=row.enabled,
        device_id=row.device_id,
        address=row.address,
    )
