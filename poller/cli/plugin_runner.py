"""Runs a plugin's coroutine aside, so that the command ends in time: also with one that blocks, or will not be stopped.

What still runs then is left behind; `leave` ends the process without waiting for it.
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

#: How long a plugin that is done, or was cancelled, may tidy up.
TIDY_S = 1.0

_left: list[threading.Thread] = []


def run(work: Coroutine[Any, Any, T], within_s: float) -> T:
    """Its result. Raises what it raises; CollectorCrashed when nothing came, because somebody keeps the loop."""
    import asyncio  # here, because every command imports this module
    from concurrent.futures import Future

    result: Future[T] = Future()

    async def deliver() -> None:
        try:
            result.set_result(await work)
        except BaseException as error:  # noqa: BLE001  raised again below
            result.set_exception(error)

    def loop() -> None:
        with suppress(BaseException):  # of tasks that a plugin left behind
            asyncio.run(deliver())
        if not result.done():
            result.set_exception(errors.CollectorCrashed("the collector ended the loop it runs on"))

    thread = threading.Thread(target=loop, name="aside", daemon=True)
    thread.start()
    try:
        return result.result(within_s + TIDY_S)
    except TimeoutError:
        if result.done():
            raise
        text = f"no end within {within_s:g} s: the collector blocks, and nobody can stop it"
        raise errors.CollectorCrashed(text) from None
    finally:
        thread.join(TIDY_S)
        if thread.is_alive():
            _left.append(thread)


def leave(code: int) -> NoReturn:
    """End the process; at once when a plugin still runs in it."""
    if not any(thread.is_alive() for thread in _left):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
