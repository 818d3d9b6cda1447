"""A real agent: net-snmp's snmpd on a free port of loopback, with the data of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cluster
from poller import errors
from poller.collectors.snmp.engines import gufo_community
from poller.sim import fleet

PROGRAM = "snmpd"
ADDRESS = "127.0.0.1"
PATIENCE_S = 20.0
_SYS_NAME = "1.3.6.1.2.1.1.5.0"


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """Run snmpd and yield its port. Raises StoreUnavailable if it is not installed."""
    if shutil.which(PROGRAM) is None:
        raise errors.StoreUnavailable("snmpd is not installed", hint="deploy/packages snmpd")
    port, config = _free_port(), folder / "snmpd.conf"
    config.write_text(
        f"agentaddress udp:{ADDRESS}:{port}\nrocommunity {fleet.COMMUNITY} {ADDRESS}\n"
    )
    command = [PROGRAM, "-C", "-c", str(config), "-f", "-Lf", str(folder / "snmpd.log")]
    state = {**os.environ, "SNMP_PERSISTENT_DIR": str(folder / "snmpd"), "MIBS": ""}
    child = subprocess.Popen(
        command, env=state, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        cluster.until(
            "starting snmpd", 1, lambda: asyncio.run(_answers(port)), PATIENCE_S, every_s=0.05
        )
        yield port
    finally:
        child.terminate()
        child.wait()


async def _answers(port: int) -> bool:
    link = gufo_community.connect(ADDRESS, port, fleet.COMMUNITY, "2c")
    try:
        return bool(await link.get((_SYS_NAME,), 0.2))
    except errors.DeviceError:
        return False
    finally:
        link.close()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])
