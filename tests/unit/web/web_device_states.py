"""States of the device of `web_rates`, as the inventory and the board would give them."""

from __future__ import annotations

import web_rates

from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation.device_state import DeviceState
from poller.state.board.breakers import BoardTarget


def with_status(
    status: Status, now_ms: int, address: str = "192.0.2.1", site: str = "west"
) -> DeviceState:
    """A device with one target, whose next poll is due in 56.5 seconds."""
    target = BoardTarget(
        id=0,
        interval_ms=web_rates.MINUTE,
        status=status,
        text="",
        place="due",
        next_ms=now_ms + 56_500,
    )
    return DeviceState(address=address, site=site, now_ms=now_ms, on_board={0: target})


def never_answered(message: str = "no answer from 192.0.2.1", **where: str) -> DeviceState:
    now_ms = web_rates.now_ms()
    status = Status(
        state=State.FAILING,
        since_ms=now_ms - 61_000,
        run_ms=now_ms - 5_000,
        finished_ms=now_ms - 4_000,
        ok_ms=0,
        failures=2,
        code="timeout",
        message=message,
    )
    return with_status(status, now_ms, **where)


def well() -> DeviceState:
    now_ms = web_rates.now_ms()
    status = Status(
        state=State.OK,
        since_ms=now_ms - 61_000,
        run_ms=now_ms - 5_000,
        finished_ms=now_ms - 4_000,
        ok_ms=now_ms - 4_000,
    )
    return with_status(status, now_ms)


WELL = well()
