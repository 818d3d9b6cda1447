"""Measures the web process under clients that never finish: half-sent requests or open streams.

    python tests/slow_clients.py PID PORT half-sent 5000
    python tests/slow_clients.py PID PORT streams 2000

PID is the web process. Raise `ulimit -n` above the number of connections first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from pathlib import Path

HEADS = {
    "half-sent": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "streams": b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}
PROBE = b"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
MEASURED_S = 10.0


class SlowClient(asyncio.Protocol):
    """Sends its head and then nothing; counts whether the server keeps the connection."""

    open = 0
    refused = 0

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._is_first = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        SlowClient.open += 1
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        if self._is_first and not data.startswith(b"HTTP/1.1 200"):
            SlowClient.refused += 1
        self._is_first = False

    def connection_lost(self, _error: Exception | None) -> None:
        SlowClient.open -= 1


async def main(arguments: argparse.Namespace) -> None:
    """Print memory, processor time and response times, without and with the slow clients."""
    await report(arguments, "idle")
    loop = asyncio.get_running_loop()
    head = HEADS[arguments.kind]
    failed = 0
    for _ in range(arguments.count):
        connect = loop.create_connection(lambda: SlowClient(head), "127.0.0.1", arguments.port)
        try:
            await asyncio.wait_for(connect, 5)
        except OSError:
            failed += 1

    print(f"{arguments.count} {arguments.kind} connections, {failed} could not connect")
    for number in range(1, 4):
        await report(arguments, f"loaded, after {number * MEASURED_S:.0f} s")


async def report(arguments: argparse.Namespace, name: str) -> None:
    """Measure for MEASURED_S and print one line."""
    times_ms: list[float] = []
    failures = 0
    cpu_before = _cpu_s(arguments.pid)
    began = time.monotonic()
    while time.monotonic() < began + MEASURED_S:
        elapsed_ms = await probe(arguments.port)
        if elapsed_ms is None:
            failures += 1
        else:
            times_ms.append(elapsed_ms)
        await asyncio.sleep(0.2)

    cpu = (_cpu_s(arguments.pid) - cpu_before) / (time.monotonic() - began)
    answer = "no answer"
    if times_ms:
        answer = f"answer median {statistics.median(times_ms):.0f} ms, max {max(times_ms):.0f} ms"
    held = f"{SlowClient.open} held, {SlowClient.refused} refused"
    print(
        f"{name}: {_rss_mib(arguments.pid):.0f} MiB, {cpu:.0%} of a core, "
        f"{_files(arguments.pid)} files; {answer}, {failures} failed; {held}",
        flush=True,
    )


async def probe(port: int) -> float | None:
    """The time of one good request, in milliseconds; None if it is not answered with 200."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(PROBE)
            answer = await reader.read()
            writer.close()
    except OSError:
        return None
    return (time.monotonic() - began) * 1000 if answer.startswith(b"HTTP/1.1 200") else None


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("port", type=int)
    parser.add_argument("kind", choices=list(HEADS))
    parser.add_argument("count", type=int)
    asyncio.run(main(parser.parse_args()))
