"""An event loop in a thread of its own, and free ports, for the small servers of a test.

The thread lets a server answer while a blocking collector occupies the test's own thread.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

HOST = "127.0.0.1"
_TRIES = 50
_STOP_S = 5.0


class Pair(NamedTuple):
    """A TCP listener and a UDP socket on the same port."""

    listener: socket.socket
    datagrams: socket.socket

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def close(self) -> None:
        self.listener.close()
        self.datagrams.close()


@contextmanager
def background() -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """Run an event loop in a thread while the context lasts.

    Yields a function that runs a coroutine on that loop and returns its result. Coroutines that
    still run at the end are cancelled.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="poller-testing", daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(_STOP_S)

    try:
        yield run
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_STOP_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)
        loop.close()


def pair() -> Pair:
    """Bind a loopback port that is free for both TCP and UDP. Raises RuntimeError."""
    for _ in range(_TRIES):
        listener = socket.create_server((HOST, 0), backlog=256)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            datagrams.bind(listener.getsockname())
        except OSError:  # another process has this UDP port
            listener.close()
            datagrams.close()
            continue
        for opened in (listener, datagrams):
            opened.setblocking(False)
        return Pair(listener, datagrams)
    raise RuntimeError("no port of loopback is free for both TCP and UDP")


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
