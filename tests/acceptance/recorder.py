"""A collector for the acceptance tests.

It responds as its options say and writes a line at every start and end of a poll, so that a test
can count polls from outside. It is installed like any plugin.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from poller.collectors import api

#: The file of the lines. No setting of poller, so it has no POLLER_ prefix.
FILE_VARIABLE = "RECORDER_FILE"
#: A file with this suffix makes one worker take a lot of memory.
HOARD = ".hoard"
ENTRY_POINT = "[poller.collectors]\nrecorder = tests.acceptance.recorder:Recorder\n"


class Recorder:
    """Takes `seconds` for a poll, writes `word` in its line and has a series with it, which makes
    an edit of the options visible.
    """

    name: ClassVar[str] = "recorder"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        seconds: float = Field(0.0, ge=0, le=60)
        word: str = Field("", pattern=r"^\w*$")

    def __init__(self) -> None:
        self._file: int | None = None
        self._hoard = b""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        self._record("+", poll)
        self._grow()
        try:
            if poll.options.seconds:
                await asyncio.sleep(poll.options.seconds)
            yield api.Reading("polled", 1.0, {}, api.Kind.GAUGE)
            if poll.options.word:
                yield api.Reading("worded", 1.0, {"word": poll.options.word}, api.Kind.GAUGE)
        finally:
            self._record("-", poll)

    def _grow(self) -> None:
        """Take a lot of memory, once, in the first poll after a test made the hoard file."""
        hoard = Path(os.environ[FILE_VARIABLE] + HOARD)
        if hoard.exists():
            hoard.unlink(missing_ok=True)
            self._hoard = b"x" * 300_000_000

    def _record(self, sign: str, poll: api.Poll) -> None:
        if self._file is None:
            self._file = os.open(os.environ[FILE_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        # One short write to a file opened for appending: lines of several workers do not mix.
        line = (
            f"{sign} {poll.target_id} {os.getpid()} {time.time_ns() // 1000} {poll.options.word}\n"
        )
        os.write(self._file, line.encode())


def install(directory: Path) -> None:
    """Register the collector for every Python that has `directory` on its path, as pip would."""
    info = directory / "poller_recorder-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poller-recorder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)
