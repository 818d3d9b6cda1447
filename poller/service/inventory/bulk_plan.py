"""The plan of a change of many devices or targets: what matches, checked, and not yet done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.domain.access.actor import Actor
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit, target_selection
from poller.service.inventory.new_sites import NewSite

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class BulkDone:
    """How many devices or targets a bulk change was about, and how many it changed."""

    matched: int
    changed: int
    targets_removed: int = 0  # with their devices


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """A checked change of many. `carry_out` does it, all or nothing."""

    names: Sequence[str]
    carry_out: Callable[[], BulkDone]
    ids: Sequence[int] = ()  # of the devices or targets, in the order of the names
    new_sites: Sequence[NewSite] = ()
    notes: Sequence[str] = ()


def matching_devices(
    services: Services, actor: Actor | None, wanted: TargetFilter
) -> list[SelectedDevice]:
    """Return the devices that match. Raises NotFound if there is none, NotAllowed."""
    limited = site_limit.limited(actor, wanted)
    found = target_selection.select_devices(services, limited)
    if not found:
        raise _no_match("device", wanted)
    return found


def matching_targets(
    services: Services, actor: Actor | None, wanted: TargetFilter
) -> list[SelectedTarget]:
    """Return the targets that match. Raises NotFound if there is none, NotAllowed."""
    limited = site_limit.limited(actor, wanted)
    found = target_selection.select_targets(services, limited)
    if not found:
        raise _no_match("target", wanted)
    return found


def _no_match(noun: str, wanted: TargetFilter) -> errors.NotFound:
    """Return the error for a filter that selects nothing, which it repeats."""
    hint = f"what there is: poller {noun} list"
    return errors.NotFound(f"no {noun} matches {target_filter.text(wanted)}".rstrip(), hint=hint)
