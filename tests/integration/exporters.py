"""Debian's snmp_exporter, an snmpd that serves recorded walks, and the samples that exporter and
poller make of them.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from poller.collectors.credentials import Community
from poller.collectors.poll_runner import PollReport
from poller.collectors.snmp import SnmpCollector
from poller.presentation.exposition import prometheus_text
from tests.conftest import missing, wait_until
from tests.unit.collectors.polls import polled

WALKS = Path(__file__).parent.parent / "walks"
EXPORTER = "prometheus-snmp-exporter"

#: Name and labels to value; and by name, type and help.
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
Families = dict[str, tuple[str, str]]


class Exposed(NamedTuple):
    samples: Samples
    families: Families


class Failed(NamedTuple):
    """The exporter's response when a scrape fails."""

    status: int
    text: str


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    if shutil.which(command[0]) is None:
        missing(f"{command[0]} is not installed")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **environment}
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=10)


@contextmanager
def snmpd(directory: Path, walk: Path | None = None) -> Iterator[int]:
    """Start an agent that serves only a walk, or this machine's own tree, and give its port."""
    directory.mkdir(exist_ok=True)
    port = free_port(socket.SOCK_DGRAM)
    lines = [f"agentaddress udp:127.0.0.1:{port}", "rocommunity public 127.0.0.1"]
    if walk is not None:
        served = f"{sys.executable} {WALKS / 'serve.py'} {walk}"
        lines += [f"pass_persist {arc} {served}" for arc in (".1.3.6.1.2.1", ".1.3.6.1.4.1")]
    config = directory / "snmpd.conf"
    config.write_text("\n".join(lines) + "\n")
    only = ["-I", "pass_persist,vacm_conf"] if walk is not None else []
    command = ["snmpd", "-C", "-c", str(config), *only, "-f", "-Lf", str(directory / "snmpd.log")]
    state = {"SNMP_PERSISTENT_DIR": str(directory / "state"), "MIBS": ""}
    with running(command, directory / "output", **state) as process:
        wait_until(lambda: answers(port), "snmpd", process)
        yield port


def answers(port: int) -> bool:
    command = [
        "snmpgetnext",
        "-v2c",
        "-c",
        "public",
        "-t",
        "1",
        "-r",
        "0",
        "-On",
        f"127.0.0.1:{port}",
        "1.3.6.1",
    ]
    done = subprocess.run(
        command, env={**os.environ, "MIBS": ""}, capture_output=True, text=True, check=False
    )
    return " = " in done.stdout


@contextmanager
def exporter(config: Path, directory: Path) -> Iterator[str]:
    """Start the exporter with this file, and give its address."""
    address = f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"
    command = [EXPORTER, f"--config.file={config}", f"--web.listen-address={address}"]
    with running(command, directory / "exporter.log") as process:
        wait_until(
            lambda: urllib.request.urlopen(f"http://{address}/metrics", timeout=2).read(),
            EXPORTER,
            process,
        )
        yield address


def theirs(address: str, port: int, module: str) -> Exposed | Failed:
    url = f"http://{address}/snmp?module={module}&target=127.0.0.1:{port}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return exposed(answer.read().decode())
    except urllib.error.HTTPError as error:
        return Failed(error.code, error.read().decode(errors="replace"))


def ours(port: int, config: Path | str, module: str, **more: Any) -> tuple[Exposed, PollReport]:
    """Return the output of `poller collect --output prometheus`, without the second that a process
    takes to start.
    """
    collector = SnmpCollector()
    options = {"port": port, "config": str(config), "modules": module, **more}

    async def poll() -> PollReport:
        try:
            return await polled(collector, "127.0.0.1", Community.from_text("public"), **options)
        finally:
            await collector.close()

    drained = asyncio.run(poll())
    if drained.outcome.readings is None:
        return Exposed({}, {}), drained
    texts = collector.help_texts(collector.Options.model_validate(options))
    return exposed(
        "\n".join(prometheus_text.lines(drained.outcome.readings, texts)) + "\n"
    ), drained


def exposed(text: str) -> Exposed:
    samples: Samples = {}
    families: Families = {}
    for family in text_string_to_metric_families(text):
        if not family.name.startswith("snmp_scrape_"):
            families[family.name] = family.type, family.documentation
            samples.update({(s.name, frozenset(s.labels.items())): s.value for s in family.samples})
    return Exposed(samples, families)


def differences(one: Exposed, other: Exposed) -> dict[str, Any]:
    """Return the differences in samples, types and help texts; empty if there are none.

    NaN equals NaN here.
    """
    both = one.samples.keys() | other.samples.keys()
    unequal = {
        f"{name}{dict(sorted(labels))}": (
            one.samples.get((name, labels)),
            other.samples.get((name, labels)),
        )
        for name, labels in both
        if not same(one.samples.get((name, labels)), other.samples.get((name, labels)))
    }
    return unequal | {
        name: (one.families.get(name), other.families.get(name))
        for name in one.families.keys() | other.families.keys()
        if one.families.get(name) != other.families.get(name)
    }


def same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))
