"""Ping by TCP: how long does it take until a connection is accepted or refused? Either way somebody is there."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from typing import Any

from poller.collectors.ping.round_trips import Pace, Trips

#: Where `struct tcp_info` of Linux has its round trip time, in microseconds.
_RTT_AT = 68
_RTT_END = _RTT_AT + 4


async def burst(family: int, where: tuple[Any, ...], pace: Pace) -> Trips:
    """Connect `pace.count` times; each connection is closed at once."""
    answers = await asyncio.gather(
        *(
            _knock(family, where, number * pace.interval_s, pace.patience_s)
            for number in range(pace.count)
        )
    )
    seconds = [answer for answer, _, _ in answers if answer is not None]
    told = next((text for _, text, _ in answers if text), "")
    return Trips(pace.count, seconds, told, any(accepted for _, _, accepted in answers))


async def _knock(
    family: int, where: tuple[Any, ...], wait_s: float, patience_s: float
) -> tuple[float | None, str, bool]:
    """Round trip, or what was said instead; and whether the port accepted."""
    await asyncio.sleep(wait_s)
    loop = asyncio.get_running_loop()
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.setblocking(False)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(patience_s):
                await loop.sock_connect(made, where)
        except ConnectionRefusedError:
            return time.perf_counter() - began, "", False
        except TimeoutError:
            return None, "", False
        except OSError as error:
            return None, os.strerror(error.errno) if error.errno else str(error), False
        return _handshake_s(made) or time.perf_counter() - began, "", True


def _handshake_s(connected: socket.socket) -> float:
    """As the kernel measured it, which does not count how busy we were; 0 when it does not know."""
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT_END)
    except OSError:
        return 0.0
    return struct.unpack_from("=I", info, _RTT_AT)[0] / 1_000_000 if len(info) >= _RTT_END else 0.0
