"""Audit rows that actions leave, and polls that end by hand."""

from __future__ import annotations

from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.state.board.board_values import Move, Place
from tests.integration.breaker_worlds import World


def audited(services: Services) -> list[AuditRow]:
    """The audit rows, the oldest first."""
    return audit_rows.listing(services.engine, AuditQuery())[::-1]


def facts(row: AuditRow) -> tuple[str, str, str, int]:
    return row.actor, row.action, row.subject, row.count


def finish(world: World, ids: list[int], state: State = State.OK) -> None:
    """Poll the requested targets as a worker does."""
    claim = world.claim()
    world.board.start(claim.token, 0, "c", 15_000, ids)
    now_ms = world.board.now_ms()
    code = "timeout" if state is State.FAILING else ""
    status = Status(state, now_ms, now_ms, now_ms, code=code)
    moves = [Move(key, now_ms + 60_000, status.pack(), Place.DUE) for key in ids]
    world.board.finish(claim.token, moves)
