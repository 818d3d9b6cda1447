"""Switches of 48 ports with 15 objects each: their module, and what a poll of one asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmarks import agents, if_mib
from poller import errors
from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.sim import fleet, hardware
from poller.sim.sim_process import simulated

MODEL = hardware.SWITCH_48.name
PORTS = 48
MODULE = "ports15"
#: The objects of each port. sysUpTime, one for the switch, comes on top.
OBJECTS = (
    "ifAdminStatus",
    "ifOperStatus",
    "ifHighSpeed",
    "ifHCInOctets",
    "ifHCOutOctets",
    "ifHCInUcastPkts",
    "ifHCOutUcastPkts",
    "ifHCInMulticastPkts",
    "ifHCOutMulticastPkts",
    "ifHCInBroadcastPkts",
    "ifHCOutBroadcastPkts",
    "ifInErrors",
    "ifOutErrors",
    "ifInDiscards",
    "ifOutDiscards",
)


class Asked(NamedTuple):
    """A repeat poll of one switch."""

    samples: int
    requests: int


def module_file(folder: Path) -> str:
    """Write the module, cut from if_mib, and return the path of its file."""
    whole = if_mib.module()
    metrics = [each for each in whole["metrics"] if each["name"] in (*OBJECTS, "sysUpTime")]
    walk = [each["oid"] for each in metrics if each["name"] != "sysUpTime"]
    module = {"walk": walk, "get": whole["get"], "metrics": metrics}
    path = folder / "ports15.yml"
    path.write_text(yaml.safe_dump({"modules": {MODULE: module}}))
    return str(path)


def asked(config: str) -> Asked:
    """Poll one switch a few times and return what the last poll asked."""
    device = agents.devices(1, MODEL)[0]
    with simulated([device]) as ports:
        return asyncio.run(_asked(device.address, ports.snmp, config))


async def _asked(address: str, port: int, config: str) -> Asked:
    collector = SnmpCollector()
    options = {"port": port, "modules": [MODULE], "config": config}
    options["max_repetitions"] = agents.REPETITIONS
    checked = collector.Options.model_validate(options)
    credential = Community.from_text(fleet.COMMUNITY)
    memory: dict[str, object] = {}
    found = Asked(0, 0)
    for _ in range(3):
        deadline = asyncio.get_running_loop().time() + 10
        poll = Poll(1, "switch", address, checked, credential, deadline, memory)
        report = await poll_runner.run_and_report(collector, poll)
        if report.outcome.readings is None or report.traffic is None:
            raise errors.StoreUnavailable("the simulated switch gave no readings")
        found = Asked(len(report.outcome.readings.values), report.traffic.sent)
    await collector.close()
    return found
