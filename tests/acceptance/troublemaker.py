"""A plugin as one hopes never to meet: each of its targets says in its options how it shall go wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from poller.collectors import api

NAME = "troublemaker"
ENTRY_POINT = f"[poller.collectors]\n{NAME} = tests.acceptance.troublemaker:Troublemaker\n"


class Troublemaker:
    name: ClassVar[str] = NAME
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        do: str = "answer"
        text: str = ""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if poll.options.do == "crash":
            raise KeyError(poll.options.text)
        if poll.options.do == "time_out":
            raise api.DeviceTimeout("no answer")
        if poll.options.do == "never_end":
            await _sleep_whatever_happens(3.0)
        yield api.Reading("polled", 1.0, {}, api.Kind.GAUGE)


async def _sleep_whatever_happens(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue


def install(directory: Path) -> None:
    """Make it known to every Python that has `directory` on its path, as pip would."""
    info = directory / f"poller_{NAME}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: poller-{NAME}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)
