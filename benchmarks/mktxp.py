"""mktxp, a Prometheus exporter for RouterOS, as a process that reads the same router."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks import cluster
from benchmarks.equal import Sample
from poller import errors
from poller.cli.up import listen_ports
from poller.sim import fleet

HINT = "make clients"
PROGRAM = Path(sys.prefix) / "clients" / "bin" / "mktxp"
PATIENCE_S = 60.0
PREFIX = "mktxp_"
#: Metrics about mktxp itself, and about a speed test that is not run.
_OWN = ("collection_time", "internet_")

#: All data that mktxp can read from a router.
_ON = (
    "health",
    "installed_packages",
    "dhcp",
    "dhcp_lease",
    "connections",
    "connection_stats",
    "interface",
    "routerboard",
    "wireguard_peers",
    "bridge_vlan",
    "route",
    "pool",
    "firewall",
    "neighbor",
    "dns",
    "ipv6_route",
    "ipv6_pool",
    "ipv6_firewall",
    "ipv6_neighbor",
    "poe",
    "monitor",
    "netwatch",
    "public_ip",
    "wireless",
    "wireless_clients",
    "capsman",
    "capsman_clients",
    "w60g",
    "eoip",
    "gre",
    "ipip",
    "lte",
    "ipsec",
    "switch_port",
    "kid_control_assigned",
    "kid_control_dynamic",
    "user",
    "queue",
    "bfd",
    "bgp",
    "routing_stats",
    "certificate",
    "container",
)


@dataclass(frozen=True, slots=True)
class Mktxp:
    pid: int
    port: int

    def scrape(self) -> dict[Sample, float]:
        """Return samples under our names: no prefix, no `_total`, no labels of the router."""
        found: dict[Sample, float] = {}
        for family in text_string_to_metric_families(self._text()):
            for one in family.samples:
                name = one.name.removeprefix(PREFIX)
                if name.startswith(_OWN) or name == one.name:
                    continue
                if family.type == "counter":
                    name = name.removesuffix("_total")
                labels = {
                    key: text
                    for key, text in one.labels.items()
                    if not key.startswith("routerboard_")
                }
                found[Sample(name, frozenset(labels.items()))] = one.value
        return found

    def _text(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "identity"})
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise errors.StoreUnavailable("mktxp failed a scrape", body.strip()[-200:])
        return body


def installed() -> bool:
    return PROGRAM.exists()


@contextmanager
def running(folder: Path, address: str, port: int, lists: Sequence[str] = ()) -> Iterator[Mktxp]:
    """Run mktxp with all data enabled, on a free port of loopback."""
    home, listen = folder / "mktxp", listen_ports.free_port()
    home.mkdir()
    (home / "mktxp.conf").write_text(_routers(address, port, lists))
    (home / "_mktxp.conf").write_text(_itself(listen))
    (home / "mktxp.conf").chmod(0o600)
    environment = {**os.environ, "TZ": "UTC", "PYTHONUNBUFFERED": "1"}
    with (folder / "mktxp.log").open("w") as log:
        child = subprocess.Popen(
            [PROGRAM, "--cfg-dir", home, "export"], stdout=log, stderr=log, env=environment
        )
    try:
        cluster.until("starting mktxp", 1, lambda: _listens(listen), PATIENCE_S, every_s=0.05)
        yield Mktxp(child.pid, listen)
    finally:
        child.terminate()
        child.wait()


def _routers(address: str, port: int, lists: Sequence[str]) -> str:
    where = {
        "hostname": address,
        "port": str(port),
        "username": fleet.USERNAME,
        "password": fleet.PASSWORD,
    }
    on = dict.fromkeys(("enabled", *_ON), "True") | {
        f"{ip}address_list": ",".join(lists) or "None" for ip in ("", "ipv6_")
    }
    return _section("router", {**where, **on}) + _section("default", {})


def _itself(listen: int) -> str:
    own = {
        "listen": f"'127.0.0.1:{listen}'",
        "socket_timeout": "20",
        "minimal_collect_interval": "0",
    }
    return _section("MKTXP", {**own, "bandwidth": "False", "verbose_mode": "False"})


def _section(name: str, lines: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"    {key} = {text}\n" for key, text in lines.items())


def _listens(port: int) -> bool:
    """Check the port only: a scrape would do its work twice."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
