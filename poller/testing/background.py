"""Small servers for tests, on a loop in a thread of its own: so a collector that blocks meets them, too."""

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
    """One port, bound for both protocols."""

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
    """A loop in a thread; call what it gives with a coroutine to run that there, and have its result."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="poller-testing", daemon=True)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(_STOP_S)
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_STOP_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)
        loop.close()


def pair() -> Pair:
    """A free port of loopback, TCP and UDP."""
    for _ in range(_TRIES):
        listener = socket.create_server((HOST, 0), backlog=256)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            datagrams.bind(listener.getsockname())
        except OSError:  # somebody else's
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
