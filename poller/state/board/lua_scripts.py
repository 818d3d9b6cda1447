"""The Lua scripts of the board. `lua/prelude.lua` is the beginning of every script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.commands.core import Script
from redis.exceptions import NoScriptError

from poller.state.board.board_values import NotLeader
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

_FOLDER = files("poller.state.board") / "lua"
_NOT_LEADER = ["NOTLEADER"]


class Scripts:
    """Runs scripts on one server. A script is read and sent to the server at its first run."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = [keys.prefix]
        self._loaded: dict[str, Script] = {}

    def run(self, name: str, arguments: Sequence[Any]) -> Any:
        """Run a script and return its reply. Raises StoreError."""
        script = self._script(name)
        with store_errors(self._client, name):
            return script(keys=self._keys, args=arguments)

    def run_as_leader(self, name: str, leader: str, arguments: Sequence[Any]) -> Any:
        """Run a script that checks the token of the leader. Raises StoreError, NotLeader."""
        return _checked(self.run(name, [leader, *arguments]))

    def add(self, pipe: Pipeline, name: str, arguments: Sequence[Any]) -> None:
        """Add a script to commands that go to the server together."""
        pipe.evalsha(self._script(name).sha, len(self._keys), *self._keys, *arguments)

    def reply(self, name: str, arguments: Sequence[Any], reply: Any) -> Any:
        """The reply to an added script that checks the token of the leader.

        A server that does not know the script yet runs it now. Raises StoreError, NotLeader.
        """
        with store_errors(self._client):
            if isinstance(reply, NoScriptError):
                reply = self._client.eval(source(name), len(self._keys), *self._keys, *arguments)
            if isinstance(reply, Exception):
                raise reply
        return _checked(reply)

    def _script(self, name: str) -> Script:
        script = self._loaded.get(name)
        if script is None:
            script = self._loaded[name] = self._client.register_script(source(name))
        return script


def _checked(reply: Any) -> Any:
    if reply == _NOT_LEADER:
        raise NotLeader
    return reply


def source(name: str) -> str:
    """The text of a script with the prelude in front."""
    prelude = _FOLDER / "prelude.lua"
    script = _FOLDER / f"{name}.lua"
    return prelude.read_text() + script.read_text()
