"""`/api/v1/board`: the schedule in Redis, compared with the inventory and repaired."""

from __future__ import annotations

import threading

from pydantic import BaseModel, Field

from poller import errors
from poller.service.operations import board_actions
from poller.web.api.contract import problems, resources
from poller.web.api.contract.needs import Administering, ReadingAll

router = resources.router("board")

#: A check or repair reads every target: one at a time in a process.
_turn = threading.Lock()


class BoardCheckBody(BaseModel):
    """The numbers of a check. Faults have the ids of their first targets."""

    is_sound: bool = Field(description="Every enabled target is in exactly one place.")
    due: int
    in_flight: int
    parked: int
    held: int
    pending: int = Field(description="Targets that the leader has not placed yet.")
    lost: int
    doubled: int
    strays: int
    unreadable: int
    lost_targets: list[int]
    doubled_targets: list[int]
    stray_targets: list[int]
    unreadable_targets: list[int]


class BoardRepairBody(BaseModel):
    """How many faults were mended, with the ids of their first targets."""

    lost_mended: int
    doubled_mended: int
    misplaced_mended: int
    stray_mended: int
    unreadable_mended: int
    sums_mended: int
    lost_targets: list[int] = Field(default_factory=list)
    doubled_targets: list[int] = Field(default_factory=list)
    misplaced_targets: list[int] = Field(default_factory=list)
    stray_targets: list[int] = Field(default_factory=list)
    unreadable_targets: list[int] = Field(default_factory=list)
    note: str = Field("", description="What went wrong beside the repair.")


@router.get("/check", responses={409: problems.CHANGING[409]})
def check_board(call: ReadingAll) -> BoardCheckBody:
    """Compare the board with the inventory. Reads every target."""
    _take_turn()
    try:
        found = board_actions.check(call.services)
    finally:
        _turn.release()
    return BoardCheckBody.model_validate(found, from_attributes=True)


@router.post("/repair", responses=problems.CHANGING)
def repair_board(call: Administering) -> BoardRepairBody:
    """Put every target into exactly one place. Safe while polling."""
    _take_turn()
    try:
        done = board_actions.repair(call.services, call.actor)
    finally:
        _turn.release()
    samples = {name: list(ids) for name, ids in done.samples.items()}
    return BoardRepairBody(**done.counts, **samples, note=done.note)


def _take_turn() -> None:
    if not _turn.acquire(blocking=False):
        raise errors.AlreadyRunning(
            "a check or repair of the board runs already", hint="send it again later"
        )
