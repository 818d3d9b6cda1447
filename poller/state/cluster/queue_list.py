"""Which queues are there? The leader keeps the list and tells the workers; see lua/domains.lua for when one goes."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from redis.commands.core import Script

from poller.state.board import lua_scripts
from poller.state.board.board_values import NotLeader
from poller.state.board.moves import ROUTINE_MARK, Board
from poller.state.redis_client import store_errors


class Changes(NamedTuple):
    came: list[str]
    went: list[str]


class Domains:
    def __init__(self, board: Board) -> None:
        self.redis = board.redis
        self.keys = board.keys

    def agree(self, leader: str) -> Changes:
        """Queues that targets need are listed, those that nobody needs are not any more. Raises StoreError, NotLeader.

        A queue that `place` filled is listed, and told, already; it comes here only if somebody spoiled the list.
        """
        with store_errors(self.redis):
            answer = self._script(keys=[self.keys.prefix], args=[leader, ROUTINE_MARK])
        if answer[0] == "NOTLEADER":
            raise NotLeader
        return Changes(*answer)

    @cached_property
    def _script(self) -> Script:
        return lua_scripts.load(self.redis, ("domains",))["domains"]
