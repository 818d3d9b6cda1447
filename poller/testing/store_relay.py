"""A TCP relay between a sink and its store, which fails as stores and networks fail.

with StoreRelay(5432) as relay:
    sink.write(samples)         # to 127.0.0.1, port relay.port
    relay.lose_answer()         # the store gets the next request, the sink no answer
"""

from __future__ import annotations

import enum
import socket
import struct
import threading
from contextlib import suppress
from typing import Self


class LinkFault(enum.Enum):
    """A fault that the relay makes of data."""

    DOWN = "down"
    SLOW = "slow"
    CUT_REQUEST = "cut_request"  # only the next one
    LOSE_ANSWER = "lose_answer"  # only the next one


class StoreRelay:
    """Forwards 127.0.0.1:`port` to the store's port. Use it in a `with` statement."""

    def __init__(self, store_port: int) -> None:
        self._store = ("127.0.0.1", store_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._fault: LinkFault | None = None
        self._links: set[_Link] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def down(self) -> None:
        """Reset every connection, and each new one."""
        self._fault = LinkFault.DOWN
        for link in list(self._links):
            link.reset()

    def slow(self) -> None:
        """Forward nothing; connections stay open."""
        self._fault = LinkFault.SLOW

    def cut_request(self) -> None:
        """Forward half of the next data of the sink, and reset the connection."""
        self._fault = LinkFault.CUT_REQUEST

    def lose_answer(self) -> None:
        """Forward requests, and reset the connection when the store answers."""
        self._fault = LinkFault.LOSE_ANSWER

    def recover(self) -> None:
        """Forward everything. Connections that a fault held are reset."""
        held = self._fault is LinkFault.SLOW
        self._fault = None
        for link in list(self._links) if held else ():
            link.reset()

    def passes(self, data: bytes, *, is_answer: bool) -> bytes | None:
        """Return what becomes of some data; None: the connection is reset after half of it."""
        fault = self._fault
        if fault is LinkFault.SLOW:
            return b""
        if fault is LinkFault.CUT_REQUEST and not is_answer:
            self._fault = None
            return None
        if fault is LinkFault.LOSE_ANSWER and is_answer:
            self._fault = None
            return None
        return data

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in list(self._links):
            link.reset()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(OSError):
                client, _ = self._listener.accept()
                if self._fault is LinkFault.DOWN:
                    _reset(client)
                    continue
                link = _Link(self, client, socket.create_connection(self._store))
                self._links.add(link)
                link.start()

    def forget(self, link: _Link) -> None:
        self._links.discard(link)


class _Link:
    """One connection of the sink, and the one to the store that belongs to it."""

    def __init__(self, relay: StoreRelay, client: socket.socket, store: socket.socket) -> None:
        self._relay = relay
        self._client = client
        self._store = store

    def start(self) -> None:
        for source, to in ((self._client, self._store), (self._store, self._client)):
            threading.Thread(target=self._pump, args=(source, to), daemon=True).start()

    def _pump(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                passed = self._relay.passes(data, is_answer=source is self._store)
                if passed is None:
                    if source is self._client:
                        to.sendall(data[: len(data) // 2])
                    break
                to.sendall(passed)
        self.reset()

    def reset(self) -> None:
        self._relay.forget(self)
        _reset(self._client)
        _reset(self._store)


def _reset(connection: socket.socket) -> None:
    """Close with a reset; other threads that read the connection end."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
