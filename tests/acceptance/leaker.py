"""A plugin that puts its password into a log line and into the text of a crash."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from poller.collectors import api
from poller.collectors.credentials import Login

NAME = "leaker"


class Leaker:
    name: ClassVar[str] = NAME
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Login,)

    class Options(api.Options):
        pass

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        assert isinstance(poll.credential, Login)
        password = poll.credential.password.get_secret_value()
        logging.getLogger(NAME).error("logging in with %s", password)
        yield api.Reading("tried", 1.0)
        raise KeyError(f"password={password}")


def install(folder: Path) -> None:
    """Let processes with `folder` in PYTHONPATH find the plugin."""
    info = folder / f"{NAME}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[poller.collectors]\n{NAME} = tests.acceptance.leaker:Leaker\n"
    )
