"""The state of a device: its inventory row, and status and place of its targets on the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import devices
from poller.state.board.breakers import BoardTarget, Breakers

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A device, and those of its targets that are on the board."""

    address: str = ""
    site: str = ""
    enabled: bool = True
    now_ms: int = 0  # the cluster's clock
    on_board: Mapping[int, BoardTarget] = field(default_factory=dict)  # by target id
    board_error: str = ""  # why the board could not be read


def read(services: Services, device: str, targets: Sequence[int]) -> DeviceState:
    """Read a device with one SQL statement and three round trips to Redis.

    Raises NotFound, StoreError (SQL). An error of Redis is in `board_error`.
    """
    found = devices.show(services.engine, device)
    now_ms = 0
    on_board: Mapping[int, BoardTarget] = {}
    board_error = ""
    try:
        now_ms = services.board.now_ms()
        on_board = Breakers(services.board).show(targets, now_ms)
    except errors.StoreError as error:
        board_error = str(error)

    return DeviceState(
        address=found.address,
        site=found.site,
        enabled=found.enabled,
        now_ms=now_ms,
        on_board=on_board,
        board_error=board_error,
    )
