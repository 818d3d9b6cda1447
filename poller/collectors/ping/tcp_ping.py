"""Pings by TCP: measures the time until a port accepts or refuses a connection."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from poller.collectors.ping.round_trips import Pace, RoundTrips

#: Offset of the round trip time in `struct tcp_info` of Linux, in microseconds.
_RTT_OFFSET = 68
_RTT_END = _RTT_OFFSET + 4


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One connection: its round trip, or None without an answer."""

    seconds: float | None
    error: str = ""
    accepted: bool = False


async def burst(family: int, address: tuple[Any, ...], pace: Pace) -> RoundTrips:
    """Connect `pace.count` times; each connection is closed at once."""
    connecting = []
    for number in range(pace.count):
        wait_s = number * pace.interval_s
        connecting.append(_connect(family, address, wait_s, pace.timeout_s))
    attempts = await asyncio.gather(*connecting)

    seconds = [attempt.seconds for attempt in attempts if attempt.seconds is not None]
    error = next((attempt.error for attempt in attempts if attempt.error), "")
    accepted = any(attempt.accepted for attempt in attempts)
    return RoundTrips(pace.count, seconds, error, accepted)


async def _connect(
    family: int, address: tuple[Any, ...], wait_s: float, timeout_s: float
) -> _Attempt:
    await asyncio.sleep(wait_s)
    loop = asyncio.get_running_loop()
    with socket.socket(family, socket.SOCK_STREAM) as connecting:
        connecting.setblocking(False)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                await loop.sock_connect(connecting, address)
        except ConnectionRefusedError:
            return _Attempt(time.perf_counter() - started)
        except TimeoutError:
            return _Attempt(None)
        except OSError as error:
            return _Attempt(None, os.strerror(error.errno) if error.errno else str(error))
        elapsed_s = time.perf_counter() - started
        return _Attempt(_handshake_s(connecting) or elapsed_s, accepted=True)


def _handshake_s(connected: socket.socket) -> float:
    """Return the kernel's round trip time, which excludes our own delays; 0 if unknown."""
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT_END)
    except OSError:
        return 0.0
    if len(info) < _RTT_END:
        return 0.0
    microseconds: int = struct.unpack_from("=I", info, _RTT_OFFSET)[0]
    return microseconds / 1_000_000
