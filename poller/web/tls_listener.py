"""TLS of the web server: a connection counts as unfinished from its first moment on.

asyncio's own server shows a connection only after its handshake, and waits a minute for it. A
client that never finishes the handshake would hold a socket that nobody counts.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from poller.web.http_connections import LimitedProtocol, WaitingConnections

#: Time for a client to confirm the end of TLS.
CLOSE_S = 2.0
#: Pause after a connection that could not be accepted, such as for want of files.
_PAUSE_S = 0.1


class Handshake:
    """A connection whose handshake is not done."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def cut(self) -> None:
        """Close now: too many connections wait."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)


class TlsListener:
    """Accepts connections, and gives those with a handshake to the protocol of HTTP."""

    def __init__(self, context: ssl.SSLContext, waiting: WaitingConnections) -> None:
        self._context = context
        self._waiting = waiting
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, listener: socket.socket, make: Callable[[], LimitedProtocol]) -> None:
        """Accept connections until `stop`."""
        listener.setblocking(False)
        self._spawn(self._accept(listener, make))

    def stop(self) -> None:
        """Accept no more, and end the handshakes under way."""
        for task in self._tasks:
            task.cancel()

    async def _accept(self, listener: socket.socket, make: Callable[[], LimitedProtocol]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            self._spawn(self._greet(connection, make))

    async def _greet(self, connection: socket.socket, make: Callable[[], LimitedProtocol]) -> None:
        handshake = Handshake(connection)
        self._waiting.add(handshake)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._waiting.head_s,
                ssl_shutdown_timeout=CLOSE_S,
            )
        except OSError:  # no TLS, too slow, or cut; SSLError is one of them
            connection.close()
        finally:
            self._waiting.remove(handshake)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
