"""Other people's programs that speak to routers, as they come: RouterOS-api, and mktxp told to collect everything.

They are in an environment of their own (`make clients`), because RouterOS-api installs a package named `tests`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from poller.sim import fleet
from tests.conftest import missing
from tests.integration.exporters import free_port

CLIENTS = Path(sys.prefix) / "clients"
READY_WITHIN_S = 120

# Everything but what asks the internet: bandwidth and the check for updates.
EVERYTHING = (
    *("health", "installed_packages", "dhcp", "dhcp_lease", "connections", "connection_stats", "interface"),
    *("routerboard", "wireguard_peers", "bridge_vlan", "route", "pool", "firewall", "neighbor", "dns"),
    *("ipv6_route", "ipv6_pool", "ipv6_firewall", "ipv6_neighbor", "poe", "monitor", "netwatch", "public_ip"),
    *("wireless", "wireless_clients", "capsman", "capsman_clients", "w60g", "eoip", "gre", "ipip", "lte", "ipsec"),
    *("switch_port", "kid_control_assigned", "kid_control_dynamic", "user", "queue", "bfd", "bgp", "routing_stats"),
    *("certificate", "container"),
)
ADDRESS_LISTS = ("blocked", "allowed")


def routeros_api() -> ModuleType:
    """The library, without what else is in its environment."""
    found = [str(path.parent) for path in CLIENTS.glob("lib/python*/site-packages/routeros_api")]
    if not found:
        missing("RouterOS-api is not installed: make clients")
    sys.path += found
    try:
        return importlib.import_module("routeros_api")
    finally:
        sys.path.remove(found[0])


@dataclass(frozen=True)
class Exporter:
    url: str
    log: Path
    pid: int

    def scrape(self) -> str:
        with urllib.request.urlopen(self.url, timeout=60) as answer:
            return bytes(answer.read()).decode()

    def complaints(self) -> list[str]:
        """Lines of its log that are not good news."""
        bad = ("error", "warning", "traceback", "exception", "failed", "could not")
        return [line for line in self.log.read_text().splitlines() if any(word in line.lower() for word in bad)]


@contextmanager
def exporting(directory: Path, address: str, port: int, again_after_s: int = 0) -> Iterator[Exporter]:
    """mktxp, ready to be scraped. It collects when it starts, and at a scrape if that is so long ago."""
    program = CLIENTS / "bin/mktxp"
    if not program.exists():
        missing("mktxp is not installed: make clients")
    listening = free_port(socket.SOCK_STREAM)
    _configure(directory, address, port, listening, again_after_s)
    log = directory / "mktxp.log"
    with log.open("wb") as output:
        command = [str(program), "--cfg-dir", str(directory), "export"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "TZ": "UTC"}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        _wait(listening, process, log)
        yield Exporter(f"http://127.0.0.1:{listening}/metrics", log, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """It listens when it has collected, word by word, which takes long for a large router."""
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail(f"mktxp was not ready:\n{log.read_text()}")


def _configure(directory: Path, address: str, port: int, listening: int, again_after_s: int) -> None:
    system = [
        "[MKTXP]",
        f"    listen = '127.0.0.1:{listening}'",
        f"    minimal_collect_interval = {again_after_s}",
        *_SYSTEM,
    ]
    (directory / "_mktxp.conf").write_text("\n".join(system) + "\n")
    router = [
        "[router]",
        "    enabled = True",
        f"    hostname = {address}",
        f"    port = {port}",
        f"    username = {fleet.USERNAME}",
        f"    password = {fleet.PASSWORD}",
        *(f"    {name} = True" for name in EVERYTHING),
        f"    address_list = {','.join(ADDRESS_LISTS)}",
        f"    ipv6_address_list = {','.join(ADDRESS_LISTS)}",
        "[default]",
    ]
    (directory / "mktxp.conf").write_text("\n".join(router) + "\n")


_SYSTEM = ("    bandwidth = False", "    verbose_mode = False", "    socket_timeout = 20")
