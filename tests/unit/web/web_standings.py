"""How the device of `web_rates` stands, as a board would have answered."""

from __future__ import annotations

import web_rates

from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation.device_state import Standing
from poller.state.board.breakers import BoardTarget


def stands(status: Status, now_ms: int, address: str = "192.0.2.1", site: str = "west") -> Standing:
    """Its one target is polled again in a moment."""
    return Standing(
        address,
        site,
        True,
        now_ms,
        {0: BoardTarget(0, web_rates.MINUTE, status, "", None, "due", now_ms + 56_500)},
    )


def never_answered(message: str = "no answer from 192.0.2.1", **where: str) -> Standing:
    now_ms = web_rates.now_ms()
    status = Status(
        State.FAILING, now_ms - 61_000, now_ms - 5_000, now_ms - 4_000, 0, 2, 0, "timeout", message
    )
    return stands(status, now_ms, **where)


def well() -> Standing:
    now_ms = web_rates.now_ms()
    return stands(
        Status(State.OK, now_ms - 61_000, now_ms - 5_000, now_ms - 4_000, now_ms - 4_000), now_ms
    )


WELL = well()
