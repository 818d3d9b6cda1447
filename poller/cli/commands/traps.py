"""`poller traps`: hear what devices announce, and have those that are known polled at once."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from typing import TYPE_CHECKING

from poller import bootstrap

if TYPE_CHECKING:
    from poller.bootstrap import Services


def command() -> None:
    """Listen for SNMP notifications; have the devices that send them polled. Ctrl-C stops it.

    It hears POLLER_TRAP_BIND and POLLER_TRAP_PORT: 127.0.0.1 and 1162, unless you say otherwise.
    """
    from poller.cli.inventory.inventory_database import database
    from poller.observability import logs
    from poller.traps import trap_socket

    services = bootstrap.services()
    services.configure_logs()
    services.report_errors("traps")
    database(services)
    settings = services.settings
    with trap_socket.bind(settings.trap_bind, settings.trap_port) as sock:
        host, port = sock.getsockname()[:2]
        log = logs.get(__name__)
        log.info("traps_awaited", address=f"{host}:{port}", **_reach(host))
        asyncio.run(_listen(services, sock))
        log.info("traps_stopped")


async def _listen(services: Services, sock: socket.socket) -> None:
    from poller.traps.listener import Listener

    listener = Listener(services, sock)
    running = asyncio.ensure_future(listener.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        await listener.finish()


def _reach(host: str) -> dict[str, str]:
    if ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        return {
            "note": "only this machine is heard; POLLER_TRAP_BIND=0.0.0.0 hears all (:: with IPv6)"
        }
    return {}
