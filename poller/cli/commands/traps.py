"""`poller traps`: receives SNMP notifications and requests polls of their devices."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from typing import TYPE_CHECKING

from poller import bootstrap
from poller.security import process_memory

if TYPE_CHECKING:
    from poller.bootstrap import Services


def command() -> None:
    """Receive SNMP notifications and poll the devices that send them. Ctrl-C stops it.

    It listens on POLLER_TRAP_BIND and POLLER_TRAP_PORT, by default 127.0.0.1 and 1162.
    """
    from poller.cli.inventory.inventory_database import database
    from poller.observability import logs
    from poller.traps import trap_socket

    process_memory.forbid_core_files()
    services = bootstrap.services()
    services.configure_logs()
    services.report_errors("traps")
    services.publish_metrics("traps")
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
    """The log field that explains a loopback address, which other machines do not reach."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if not address.is_loopback:
        return {}
    return {"note": "only this machine is heard; POLLER_TRAP_BIND=0.0.0.0 hears all (:: with IPv6)"}
