"""Many pages that stay open: what do they cost the web role?

An open page is one connection to the stream, as a browser has it. A list also reads itself again.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import progress
from benchmarks.section import Figure
from benchmarks.stage import Process
from poller import errors

#: All open pages together take less than this share of a core.
SHARE_PERCENT = 10.0
_WARM_S = 5.0
_CONNECT_S = 10.0
_BUFFER = 65_536


@dataclass(slots=True)
class _Seen:
    bytes: int = 0
    frames: int = 0


def measure(port: int, web: Process, pages: int, seconds: float) -> Iterator[Figure]:
    """Keep pages open and count what the web role takes for them. Raises StoreUnavailable."""
    with _opened(port, pages) as connections:
        _listen(connections, _WARM_S)  # the first frames are whole pages
        before_s = web.cpu_s
        seen = _listen(connections, seconds)
        share = (web.cpu_s - before_s) / seconds * 100
    text = f"{pages} live pages"
    yield Figure("live_percent", f"{text}, of a core", share, "%", below=SHARE_PERCENT)
    yield Figure("live_frames", f"{text}, frames to a page", seen.frames / pages / seconds, "/s")
    yield Figure("live_bytes", f"{text}, to a page", seen.bytes / pages / seconds, "B/s")


@contextlib.contextmanager
def _opened(port: int, pages: int) -> Iterator[Sequence[socket.socket]]:
    with contextlib.ExitStack() as closing:
        connections = []
        for _ in range(pages):
            address = ("127.0.0.1", port)
            one = closing.enter_context(socket.create_connection(address, timeout=_CONNECT_S))
            one.sendall(b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = one.recv(_BUFFER)
            if b" 200 " not in answer.partition(b"\r\n")[0]:
                status = answer.partition(b"\r\n")[0].decode(errors="replace")
                raise errors.StoreUnavailable(f"GET /api/stream: {status}")
            one.setblocking(False)
            connections.append(one)
        yield connections


def _listen(connections: Sequence[socket.socket], seconds: float) -> _Seen:
    """Read from all connections for a while, as slowly as a loaded machine allows."""
    seen = _Seen()
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        until_mono = time.monotonic() + seconds
        with progress.shown(f"{len(connections)} live pages", seconds) as show:
            while (left_s := until_mono - time.monotonic()) > 0:
                for key, _ in selector.select(left_s):
                    _take(key.fileobj, seen)
                show(seconds - left_s)
    return seen


def _take(connection: object, seen: _Seen) -> None:
    assert isinstance(connection, socket.socket)
    data = connection.recv(_BUFFER)
    if not data:
        raise errors.StoreUnavailable("the web role closed a live page")
    seen.bytes += len(data)
    seen.frames += data.count(b"event: patch")
