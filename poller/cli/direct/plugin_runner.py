"""Runs a plugin's coroutine in a thread, so that a command ends in time even if the plugin blocks.

A thread that does not end is abandoned; `exit_process` ends the process without waiting for it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from poller import errors

T = TypeVar("T")

#: The time a finished or cancelled plugin has to clean up.
CLEAN_UP_S = 1.0

_abandoned: list[threading.Thread] = []


def run(work: Coroutine[Any, Any, T], within_s: float) -> T:
    """The coroutine's result. Raises its exception, or CollectorCrashed if it blocks the loop."""
    import asyncio  # here, because every command imports this module
    from concurrent.futures import Future

    result: Future[T] = Future()

    async def deliver() -> None:
        try:
            result.set_result(await work)
        except BaseException as error:  # noqa: BLE001  the door to a plugin: raised again below
            result.set_exception(error)

    def loop() -> None:
        with suppress(BaseException):  # the door to tasks that a plugin left behind
            asyncio.run(deliver())
        if not result.done():
            result.set_exception(errors.CollectorCrashed("the collector ended the loop it runs on"))

    thread = threading.Thread(target=loop, name="plugin", daemon=True)
    thread.start()

    try:
        return result.result(within_s + CLEAN_UP_S)
    except TimeoutError:
        if result.done():
            raise  # the plugin's own TimeoutError
        text = f"no end within {within_s:g} s: the collector blocks and cannot be stopped"
        raise errors.CollectorCrashed(text) from None
    finally:
        thread.join(CLEAN_UP_S)
        if thread.is_alive():
            _abandoned.append(thread)


def exit_process(code: int) -> NoReturn:
    """End the process; at once, without clean-up, if an abandoned plugin still runs in it."""
    if not any(thread.is_alive() for thread in _abandoned):
        sys.exit(code)

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()

    os._exit(code)
