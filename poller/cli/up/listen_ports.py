"""The ports that servers on this machine listen on: configured, usual or free."""

from __future__ import annotations

import socket
from collections.abc import Callable

from poller import errors

#: Number of ports, counted from the preferred one, that are tried before any free port.
NEAR = 20


def choose_port(
    setting: str, configured: int | None, preferred: int, bind: str, note: Callable[[str], None]
) -> int:
    """The configured port, else the preferred port, else the next free one, which is noted.

    A configured 0 is any free port. Raises PortInUse, which names the setting.
    """
    if configured == 0:
        return free_port(bind)
    if configured:
        if not is_free(bind, configured):
            raise errors.PortInUse(
                f"{setting}: {bind}:{configured} is in use",
                hint=f"set POLLER_{setting.upper()} to another port",
            )
        return configured

    for port in range(preferred, preferred + NEAR):
        if is_free(bind, port):
            break
    else:
        port = free_port(bind)

    if port != preferred:
        note(f"{preferred} is in use, took {port}; POLLER_{setting.upper()} chooses another")

    return port


def free_port(bind: str = "127.0.0.1", kind: int = socket.SOCK_STREAM) -> int:
    """A port that is free now, chosen by the system."""
    with socket.socket(_family(bind), kind) as probe:
        probe.bind((bind, 0))
        return int(probe.getsockname()[1])


def is_free(bind: str, port: int, kind: int = socket.SOCK_STREAM) -> bool:
    """True if a server can bind the port now."""
    with socket.socket(_family(bind), kind) as probe:
        if kind == socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((bind, port))
        except OSError:
            return False
        return True


def _family(bind: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in bind else socket.AF_INET
