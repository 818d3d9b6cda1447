"""Polls on demand: request them, look at which have finished, and their results."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import filter_conditions
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.access.actor import Actor
from poller.domain.batched import batched
from poller.domain.failures import error_codes
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation import formatting, health, running_workers
from poller.service import action_audit
from poller.service.operations import target_choice
from poller.service.operations.target_choice import Choice, Chosen
from poller.state.cluster import overview_reader
from poller.state.redis_client import store_errors
from poller.state.requests import poll_tickets
from poller.state.requests.poll_tickets import PollTicket

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Above this number a poll of all that match is confirmed: they come before other polls.
MANY = 64
_PAGE = 1_000
WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class PollRequest:
    """Polls that were requested. Their results end at or after `requested_ms`."""

    ids: Sequence[int]
    requested_ms: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class PollResult:
    """The outcome of one poll; the state is `waiting` without one."""

    target_id: int
    device: str
    target: str
    collector: str
    state: str
    samples: int
    error_code: str
    message: str
    finished: datetime | None = None


def matching_enabled(services: Services, actor: Actor, wanted: TargetFilter) -> dict[int, Chosen]:
    """Return the enabled targets that match. Raises NotFound if there is none."""
    found = target_choice.matching(services, actor, wanted)
    enabled = {key: each for key, each in found.items() if each.enabled}
    if not enabled:
        raise errors.NotFound(
            f"every target that matches is disabled ({len(found):,})",
            hint="poller target edit DEVICE/TARGET --enable",
        )
    return enabled


def request(services: Services, actor: Actor, chosen: Choice, subject: str) -> PollRequest:
    """Make targets due at once. `subject` says what selected them.

    Raises NotFound if the board holds none of them, or if no worker takes one of them.
    """
    places: dict[int, str] = {}
    requested_ms = 0
    for page in batched(list(chosen), _PAGE):
        at_ms, found = services.board.demand(page)
        requested_ms = requested_ms or at_ms
        places |= found

    present = [key for key, place in places.items() if place != "gone"]
    target_choice.refuse_absent(chosen, present)
    names = target_choice.full_names(chosen[key] for key in present)
    entry = action_audit.bulk_entry("target.poll", subject, names)
    note = action_audit.record(services, actor, entry)
    _refuse_unserved(services, chosen)
    return PollRequest(list(chosen), requested_ms, note)


def newly_finished(
    services: Services, waiting: Collection[int], requested_ms: int
) -> dict[int, Status]:
    """Return those of the waiting targets whose poll ended at or after the request."""
    found: dict[int, Status] = {}
    for page in batched(sorted(waiting), _PAGE):
        for target_id, status in services.board.statuses(page).items():
            if status.finished_ms >= requested_ms:
                found[target_id] = status
    return found


def results(services: Services, chosen: Choice, done: Mapping[int, Status]) -> list[PollResult]:
    """Return the result of each target, in the order of the choice."""
    with_readings = [key for key, status in done.items() if _has_readings(status)]
    readings = stored_readings.latest(services.engine, with_readings)
    return [_result(each, done.get(key), readings.get(key)) for key, each in chosen.items()]


def explain_missing(services: Services, missing: int, wait_s: float) -> str:
    """Return the number of missing results and the health of the cluster, which explains them."""
    verdict = health.judge(overview_reader.read(services.redis, services.keys)).text
    counted = formatting.counted(missing, "target")
    return f"{counted} without a result after {wait_s:g} s. {verdict}"


def keep_ticket(services: Services, actor: Actor, ids: Sequence[int], requested_ms: int) -> str:
    """Store which results somebody wants to read later, for an hour. Return the ticket's name."""
    name = secrets.token_hex(16)
    ticket = PollTicket(requested_ms, ids, actor.site)
    poll_tickets.keep(services.redis, services.keys, name, ticket)
    return name


def ticket(services: Services, actor: Actor, name: str) -> tuple[PollTicket, Choice]:
    """Return a ticket and its targets that still exist. Raises NotFound.

    A ticket of another site is unknown to a token of one site.
    """
    found = poll_tickets.read(services.redis, services.keys, name)
    if found is None or actor.site not in (None, found.site):
        hint = "a ticket is kept for an hour; POST /api/v1/polls makes one"
        raise errors.NotFound("no poll has this ticket", hint=hint)
    rows = filter_conditions.targets_by_id(services.engine, found.ids, actor.site)
    return found, {row.id: target_choice.of_row(row) for row in rows}


def _has_readings(status: Status) -> bool:
    """True if this poll, not only an earlier one, stored readings."""
    return status.state is not State.FAILING or status.code in error_codes.FINDINGS


def _refuse_unserved(services: Services, chosen: Choice) -> None:
    """Raise NotFound for a target in a queue without a worker, instead of waiting in vain."""
    ids = [str(key) for key in chosen]
    view = overview_reader.read(services.redis, services.keys)
    for unroutable in running_workers.unroutable(view):
        key = services.keys.urgent(unroutable.queue)
        with store_errors(services.redis):
            scores: Any = services.redis.zmscore(key, ids)

        for target, score in zip(chosen.values(), scores, strict=True):
            if score is not None:
                raise errors.NotFound(
                    f'no running worker takes target "{target.full_name}"',
                    f"its queue is {unroutable.queue}: {unroutable.reason}",
                    f"start a worker that has {running_workers.queue_needs(unroutable.queue)}; "
                    "a running one finds a new plugin after a restart",
                )


def _result(target: Chosen, status: Status | None, stored: Stored | None) -> PollResult:
    names = (target.id, target.device, target.name, target.collector)
    if status is None:
        return PollResult(*names, WAITING, 0, "", "no result yet")

    is_fresh = stored is not None and stored.at_ms >= status.run_ms
    samples = len(stored.readings.values) if stored is not None and is_fresh else 0
    finished = formatting.moment(status.finished_ms)
    return PollResult(*names, status.state.value, samples, status.code, status.message, finished)
