"""The run ledger for the command line and the API: which runs an actor asks for and may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import targets
from poller.db.record import run_pages
from poller.db.record.run_pages import NamedRun, RunKey, RunPage, RunSelection
from poller.domain.access.actor import Actor
from poller.domain.failures.outcome import Result
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.service import site_limit, target_selection

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Outcomes of runs that failed or could not be attempted.
BAD = run_pages.BAD
#: Error codes of one question.
MOST_CODES = 10


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs, the newest first. Empty fields select all; all fields must match."""

    device: str = ""
    target: str = ""  # a target of the device
    target_id: int | None = None  # also of a target that was removed
    wanted: TargetFilter = ANY
    outcomes: Sequence[Result] = ()
    codes: Sequence[str] = ()
    since_ms: int = 0
    until_ms: int | None = None


def page(
    services: Services, actor: Actor, query: RunQuery, limit: int, before: RunKey | None = None
) -> RunPage:
    """Return one page of runs that the actor may see.

    Raises NotFound for an unknown device, target or site, InvalidInput, NotAllowed, StoreError.
    """
    found = run_pages.page(services.engine, _selection(services, actor, query), limit, before)
    if query.target_id is not None and not found.runs and before is None:
        _refuse_unknown_target(services, query.target_id)
    return found


def newest(services: Services, actor: Actor, query: RunQuery, limit: int) -> list[NamedRun]:
    """Return the newest runs that the actor may see, however far back. Raises as `page`."""
    return run_pages.newest(services.engine, _selection(services, actor, query), limit)


def _selection(services: Services, actor: Actor, query: RunQuery) -> RunSelection:
    selection = RunSelection(
        outcomes=tuple(dict.fromkeys(query.outcomes)),
        codes=_checked_codes(query.codes),
        since_ms=query.since_ms,
        until_ms=query.until_ms,
    )
    ids = _selected_ids(services, actor, query)
    named = _named_ids(services, actor, query)
    if named is not None:
        ids = named if ids is None else ids & named
    return replace(selection, target_ids=ids)


def _checked_codes(codes: Sequence[str]) -> tuple[str, ...]:
    """Return the codes, each once. Raises InvalidInput for an unknown one, and for too many."""
    unique = tuple(dict.fromkeys(codes))
    if len(unique) > MOST_CODES:
        raise errors.InvalidInput(f"code: {MOST_CODES} codes are allowed at a time")
    return target_filter.checked({"code": unique}).codes if unique else ()


def _selected_ids(services: Services, actor: Actor, query: RunQuery) -> set[int] | None:
    """Return the targets of the filter and of the actor's site; None for all."""
    if query.device and query.wanted.is_empty:
        return None  # the device is checked by itself
    wanted = site_limit.limited(actor, query.wanted)
    if wanted.is_empty:
        return None
    return {target.id for target in target_selection.select_targets(services, wanted)}


def _named_ids(services: Services, actor: Actor, query: RunQuery) -> set[int] | None:
    """Return the targets that the query names; None if it names none. Raises NotFound."""
    engine = services.engine
    named: set[int] | None = None
    if query.target and not query.device:
        raise errors.InvalidInput("target: a target is named with its device", hint="add device")
    if query.device:
        site_limit.visible_device(services, actor, query.device)
        if query.target:
            named = {targets.show(engine, query.device, query.target).id}
        else:
            named = {each.id for each in targets.of_device(engine, query.device)}
    if query.target_id is not None:
        if actor.site is not None:
            site_limit.visible_target(services, actor, query.target_id)
        named = {query.target_id} if named is None else named & {query.target_id}
    return named


def _refuse_unknown_target(services: Services, target_id: int) -> None:
    """Raise NotFound for a target that is neither in the inventory nor in the ledger."""
    ledger = RunSelection([target_id])
    if not run_pages.page(services.engine, ledger, 1).runs:
        site_limit.target_by_id(services, target_id)
