"""What a leader learns from one survey, with a server that reads its clock late."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

from poller.beat.clock_steps import ClockSteps
from poller.state.board.board_clock import BoardClock
from poller.state.board.board_reader import BoardReader
from poller.state.cluster.round_survey import Surveyor
from poller.state.keys import Keys

SERVER_MS = 1_800_000_000_000
BUSY_S = 0.05


class BusyServer:
    """It takes a request only after a while, and replies at once."""

    read_mono = 0.0

    def pipeline(self, transaction: bool) -> BusyServer:
        assert not transaction
        return self

    def __getattr__(self, _command: str) -> Any:
        return lambda *_arguments, **_options: None

    def execute(self, raise_on_error: bool) -> list[Any]:
        assert not raise_on_error
        time.sleep(BUSY_S)
        self.read_mono = time.monotonic()
        return [(SERVER_MS // 1000, 0), "1", {}, [], 0, []]


def test_the_clock_of_the_leader_is_never_ahead() -> None:
    """Else it would claim a slot early: its poll could end before the slot, and be made again."""
    server = BusyServer()
    scripts = SimpleNamespace(add=lambda *_: None, reply=lambda _name, _arguments, reply: reply)
    board = SimpleNamespace(redis=server, keys=Keys(), clock=BoardClock(), scripts=scripts)
    survey = Surveyor(cast(BoardReader, board), "schedule").survey(None)
    clock = ClockSteps()
    clock.check(survey.now_ms, survey.read_mono)
    assert clock.now_ms(server.read_mono) <= SERVER_MS
