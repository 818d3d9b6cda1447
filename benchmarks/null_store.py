"""A store that takes every HTTP request and stores nothing: only the sender's cost is measured.

    python -m benchmarks.null_store PORT

It says that it wrote what a request of remote write 2.0 can hold at most.
"""

from __future__ import annotations

import asyncio
import sys

_ANSWER = (
    b"HTTP/1.1 204 No Content\r\n"
    b"X-Prometheus-Remote-Write-Samples-Written: 2000\r\n"
    b"X-Influxdb-Version: 1.8\r\n\r\n"
)
_MOST_HEAD_BYTES = 64 * 1024


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_length(head))
            writer.write(_ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, text = line.partition(b":")
        if name.lower() == b"content-length":
            return int(text)
    return 0


async def _main(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port, limit=_MOST_HEAD_BYTES)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
