"""A plugin with every fault: the options of each target name the fault."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from poller.collectors import api

NAME = "troublemaker"
PLODDER = "plodder"
ENTRY_POINT = f"""[poller.collectors]
{NAME} = tests.acceptance.troublemaker:Troublemaker
{PLODDER} = tests.acceptance.troublemaker:Plodder
"""


class Unspeakable:
    """An object without a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


#: Objects that are no readings, or readings that cannot be stored.
RUBBISH: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "number": lambda: 42,
    "bytes": lambda: api.Reading(b"polled", 1.0),  # type: ignore[arg-type]
    "text_as_value": lambda: api.Reading("polled", "much"),  # type: ignore[arg-type]
    "huge_number": lambda: api.Reading("polled", 10**400),
    "list_as_labels": lambda: api.Reading("polled", 1.0, ["a"]),  # type: ignore[arg-type]
    "surrogate": lambda: api.Reading("polled\udc80", 1.0),
    "surrogate_label": lambda: api.Reading("polled", 1.0, {"a": "\ud800"}),
    "unspeakable": Unspeakable,
    "unspeakable_name": lambda: api.Reading(Unspeakable(), 1.0),  # type: ignore[arg-type]
    "unspeakable_label": lambda: api.Reading("polled", 1.0, {"a": Unspeakable()}),  # type: ignore[dict-item]
}
RAISED: dict[str, type[BaseException]] = {
    "keyboard_interrupt": KeyboardInterrupt,
    "system_exit": SystemExit,
    "generator_exit": GeneratorExit,
    "cancelled": asyncio.CancelledError,
    "base_exception": BaseException,
    "stop_iteration": StopAsyncIteration,
    "unspeakable_error": UnspeakableError,
}
#: Deeds that end the process or block it for good.
DEADLY: dict[str, Callable[[], Any]] = {
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "block": lambda: time.sleep(3600),
    "spin": lambda: re.match(r"(a+)+$", "a" * 64 + "!"),  # never lets another thread run
    "allocate": lambda: [bytearray(16 * 2**20) for _ in count()],
}


class Troublemaker:
    name: ClassVar[str] = NAME
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        do: str = "answer"
        text: str = ""

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        do = poll.options.do
        if do == "crash":
            raise KeyError(poll.options.text)
        if do == "time_out":
            raise api.DeviceTimeout("no answer")
        if do == "never_end":
            await _sleep_whatever_happens(3.0)
        if do == "wait_for_ever":
            await asyncio.get_running_loop().create_future()
        if do in RAISED:
            raise RAISED[do]
        if do in DEADLY and _may_kill(poll.options.text):
            DEADLY[do]()
        async for item in _odd(do):
            yield item
        yield api.Reading("polled", 1.0, {}, api.Kind.GAUGE)
        if do == "tell_pid":
            yield api.Reading("pid", float(os.getpid()))
        if do == "start_another":
            yield api.Reading("pid", float(subprocess.Popen(["sleep", "60"]).pid))  # noqa: ASYNC220  what a careless plugin does


class Plodder:
    """Runs in threads: some of its targets hang there, whatever their deadline."""

    name: ClassVar[str] = PLODDER
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    blocking: ClassVar[bool] = True
    Options = Troublemaker.Options

    def collect(self, poll: api.Poll) -> Iterator[api.Yielded]:
        do = poll.options.do
        if do in DEADLY and _may_kill(poll.options.text):
            DEADLY[do]()
        if do == "hang":
            yield api.Reading("begun", 1.0)
            time.sleep(3600)
        if do == "leak":
            poll.memory.setdefault("leaked", []).append(bytearray(24 * 2**20))
        yield api.Reading("pid", float(os.getpid()))


async def _odd(do: str) -> AsyncIterator[Any]:
    if do in RUBBISH:
        yield RUBBISH[do]()
    if do == "nan":
        for at, value in enumerate((float("nan"), float("inf"), float("-inf"))):
            yield api.Reading("odd", value, {"at": str(at)})
    if do == "millions":
        for at in range(5_000_000):
            yield api.Reading("many", float(at), {"at": str(at)})


def _may_kill(path: str) -> bool:
    """Return whether the target may kill: always without a path, else while the file exists.

    A test mends the plugin by removing the file.
    """
    return not path or Path(path).exists()


async def _sleep_whatever_happens(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue


def install(directory: Path) -> None:
    """Register the plugin for every Python that has `directory` on its path, as pip would."""
    info = directory / f"poller_{NAME}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: poller-{NAME}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)
