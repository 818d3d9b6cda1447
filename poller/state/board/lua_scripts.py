"""The Lua scripts of this package, ready to call."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

import redis
from redis.commands.core import Script


def load(client: redis.Redis, names: Iterable[str]) -> dict[str, Script]:
    """By name; the server gets each at its first call."""
    folder = files("poller.state.board") / "lua"
    return {name: client.register_script((folder / f"{name}.lua").read_text()) for name in names}
