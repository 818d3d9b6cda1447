"""Real SNMP clients (net-snmp, gufo, pysnmp) accept the simulated agents, and see each fault."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from gufo.snmp import sync as gufo
from pysnmp.hlapi.v3arch import asyncio as pysnmp

from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault, Protocol, SimDevice
from poller.sim.fleet_server import Ports
from poller.sim.sim_process import simulated
from poller.sim.snmp import ber

SYS_NAME = "1.3.6.1.2.1.1.5.0"
UPTIME = "1.3.6.1.2.1.1.3.0"
IF_TABLE = "1.3.6.1.2.1.2.2"
IF_X_TABLE = "1.3.6.1.2.1.31.1.1"


@pytest.fixture(scope="module")
def devices() -> list[SimDevice]:
    """Two devices of each model without fault, then one of each fault."""
    pool = [
        d
        for d in fleet.devices(400, faulty_share=0, slow_seconds=0.5)
        if d.protocol is Protocol.SNMP
    ]
    healthy = [d for m in hardware.SNMP_MODELS for d in [d for d in pool if d.model == m.name][:2]]
    spare = [d for d in pool if d not in healthy]
    faulty = [dataclasses.replace(d, fault=f) for d, f in zip(spare, fleet.FAULTS, strict=False)]
    return [*healthy, *faulty]


@pytest.fixture(scope="module")
def ports(devices: list[SimDevice]) -> Iterator[Ports]:
    with simulated(devices) as ports:
        yield ports


@pytest.fixture
def healthy(devices: list[SimDevice]) -> list[SimDevice]:
    return [device for device in devices if device.fault is Fault.NONE]


def with_fault(devices: list[SimDevice], fault: Fault) -> SimDevice:
    return next(device for device in devices if device.fault is fault)


def net_snmp(tool: str, *arguments: str) -> dict[str, str]:
    """Run one of net-snmp's tools and read its numeric output."""
    if shutil.which(tool) is None:
        reason = f"{tool} (net-snmp) is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    done = subprocess.run(
        [tool, *arguments[:-2], "-On", "-Oe", "-t2", "-r2", *arguments[-2:]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^\.([\d.]+) = (.*)$", done.stdout, re.MULTILINE))


def number(text: str) -> int:
    found = re.search(r"(\d+)\)?[^\d]*$", text.split(": ", 1)[1])
    assert found, text
    return int(found[1])


def session(
    device: SimDevice, ports: Ports, timeout: float = 2.0, community: str = fleet.COMMUNITY
) -> gufo.SnmpSession:
    return gufo.SnmpSession(
        addr=device.address, port=ports.snmp, community=community, timeout=timeout
    )


def test_snmpbulkwalk_sees_every_row(healthy: list[SimDevice], ports: Ports) -> None:
    """net-snmp walks both interface tables of every model and finds each column of each port."""
    for device in healthy:
        rows = len(hardware.chassis(device.model, device.variant).ports)
        for root, columns in ((IF_TABLE, 22), (IF_X_TABLE, 19)):
            found = net_snmp(
                "snmpbulkwalk",
                "-v2c",
                "-c",
                fleet.COMMUNITY,
                f"{device.address}:{ports.snmp}",
                root,
            )
            assert len(found) == rows * columns


def test_snmpbulkwalk_sees_counters_grow(healthy: list[SimDevice], ports: Ports) -> None:
    """Two walks a moment apart show the octets of every running port growing, in both widths."""
    device = healthy[0]
    where = ("-v2c", "-c", fleet.COMMUNITY, f"{device.address}:{ports.snmp}")
    first = net_snmp("snmpbulkwalk", *where, f"{IF_X_TABLE}.1.6")
    second = net_snmp("snmpbulkwalk", *where, f"{IF_X_TABLE}.1.6")
    running = [p for p in hardware.chassis(device.model, device.variant).ports if p.rates.in_octets]
    assert running
    for port in running:
        name = f"{IF_X_TABLE}.1.6.{port.index}"
        assert "Counter64" in first[name]
        assert number(second[name]) > number(first[name])


def test_snmpget_reads_scalars(healthy: list[SimDevice], ports: Ports) -> None:
    """Every device answers under its own address with its own name."""
    for device in healthy:
        found = net_snmp(
            "snmpget", "-v2c", "-c", fleet.COMMUNITY, f"{device.address}:{ports.snmp}", SYS_NAME
        )
        assert found == {SYS_NAME: f'STRING: "{device.name}"'}


def test_snmpwalk_version_1_ends_cleanly(healthy: list[SimDevice], ports: Ports) -> None:
    """A version 1 walk of everything ends without an error and contains no 64-bit counter."""
    device = healthy[0]
    rows = len(hardware.chassis(device.model, device.variant).ports)
    found = net_snmp(
        "snmpwalk", "-v1", "-c", fleet.COMMUNITY, f"{device.address}:{ports.snmp}", "1.3.6.1"
    )
    assert sum(name.startswith(f"{IF_TABLE}.") for name in found) == 22 * rows
    assert sum(name.startswith(f"{IF_X_TABLE}.") for name in found) == 11 * rows
    assert not any("Counter64" in value for value in found.values())


def test_gufo_walks_and_gets(healthy: list[SimDevice], ports: Ports) -> None:
    """gufo reads scalars and walks the tables, consistent between the counters of both widths."""
    for device in healthy:
        client = session(device, ports)
        rows = len(hardware.chassis(device.model, device.variant).ports)
        assert client.get(SYS_NAME) == device.name.encode()
        assert len(list(client.getbulk(IF_X_TABLE, max_repetitions=25))) == 19 * rows
        both = client.get_many([f"{IF_TABLE}.1.10.1", f"{IF_X_TABLE}.1.6.1"])
        assert both[f"{IF_TABLE}.1.10.1"] == both[f"{IF_X_TABLE}.1.6.1"] % 2**32


def test_pysnmp_walks(healthy: list[SimDevice], ports: Ports) -> None:
    """pysnmp walks the names of all ports."""
    device = healthy[0]

    async def names() -> list[str]:
        found = []
        async for error, status, _, varbinds in pysnmp.bulk_walk_cmd(
            pysnmp.SnmpEngine(),
            pysnmp.CommunityData(fleet.COMMUNITY),
            await pysnmp.UdpTransportTarget.create((device.address, ports.snmp)),
            pysnmp.ContextData(),
            0,
            25,
            pysnmp.ObjectType(pysnmp.ObjectIdentity(f"{IF_X_TABLE}.1.1")),
            lexicographicMode=False,
            lookupMib=False,
        ):
            assert not error
            assert not status
            found += [str(value) for _, value in varbinds]
        return found

    expected = [port.name for port in hardware.chassis(device.model, device.variant).ports]
    assert asyncio.run(names()) == expected


@pytest.mark.parametrize("fault", [Fault.DOWN, Fault.WRONG_CREDENTIALS])
def test_silent_faults_time_out(devices: list[SimDevice], ports: Ports, fault: Fault) -> None:
    """A device that is down, or has another community, does not answer."""
    with pytest.raises(TimeoutError):
        session(with_fault(devices, fault), ports, timeout=0.5).get(SYS_NAME)


def test_wrong_credentials_answers_its_own_community(
    devices: list[SimDevice], ports: Ports
) -> None:
    """A device with another community is not down: it responds to that community."""
    device = with_fault(devices, Fault.WRONG_CREDENTIALS)
    assert (
        session(device, ports, community=fleet.OTHER_COMMUNITY).get(SYS_NAME)
        == device.name.encode()
    )


def test_slow_device_answers_late(devices: list[SimDevice], ports: Ports) -> None:
    """A slow device answers correctly after half to one and a half times its delay."""
    device = with_fault(devices, Fault.SLOW)
    before = time.monotonic()
    assert session(device, ports, timeout=5).get(SYS_NAME) == device.name.encode()
    assert time.monotonic() - before >= device.slow_seconds * 0.5


def raw(device: SimDevice, ports: Ports) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    sock.connect((device.address, ports.snmp))
    sock.settimeout(5)
    return sock


GET_NAME = bytes.fromhex(
    "302602010104067075626c6963a01902016302010002010030 0e300c06082b060102010105000500".replace(
        " ", ""
    )
)


def answers(device: SimDevice, ports: Ports, count: int, settle: SimDevice) -> list[bytes]:
    """Return the number of responses to `count` requests.

    All devices share one socket and one loop, so once the marker is answered, all requests have
    been.
    """
    with raw(device, ports) as sock, raw(settle, ports) as marker:
        for _ in range(count):
            sock.send(GET_NAME)
        marker.send(GET_NAME)
        assert settle.name.encode() in marker.recv(4096)
        sock.setblocking(False)
        found: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(sock.recv(4096))
        return found


def test_lossy_device_drops_a_third(
    devices: list[SimDevice], healthy: list[SimDevice], ports: Ports
) -> None:
    """A lossy device leaves about 30 % of 400 requests unanswered; a healthy one none."""
    lossy = with_fault(devices, Fault.LOSSY)
    assert len(answers(healthy[0], ports, 400, healthy[1])) == 400
    assert 220 <= len(answers(lossy, ports, 400, healthy[1])) <= 340


def test_garbage_is_not_snmp(
    devices: list[SimDevice], healthy: list[SimDevice], ports: Ports
) -> None:
    """A garbage device answers everything, and never with its name in a good reply."""
    device = with_fault(devices, Fault.GARBAGE)
    found = answers(device, ports, 100, healthy[0])
    assert len(found) == 100
    assert len(set(found)) > 20
    with pytest.raises(Exception):  # noqa: B017  gufo may call it a time-out or a decoding error
        session(device, ports, timeout=0.5).get(SYS_NAME)


def rebooting_soon(device: SimDevice, seconds: float) -> SimDevice:
    """Return the device with a salt by which it reboots in about that many seconds."""
    now = time.time()
    for salt in range(100_000):
        left = device_traffic.life(salt, reboots=True).until_reboot(now)
        if left and abs(left - seconds) < 0.5:
            return dataclasses.replace(device, fault=Fault.REBOOT, salt=salt)
    raise AssertionError("no salt reboots in time")


def test_rebooting_device_starts_over(healthy: list[SimDevice]) -> None:
    """Uptime of a rebooting device grows, then falls back to zero."""
    device = rebooting_soon(healthy[0], seconds=5)
    with simulated([device]) as ports:
        client = session(device, ports)
        before = first = client.get(UPTIME)
        while (now := client.get(UPTIME)) >= before:
            assert now - first < 3000, "no reboot within 30 s"
            before = now
            time.sleep(0.02)
        assert before > 100 * 60
        assert now < 1000


def test_hostile_datagrams_do_not_stop_the_fleet(healthy: list[SimDevice], ports: Ports) -> None:
    """After thousands of random, bent, empty and huge datagrams every device still answers."""
    dice = random.Random(11)
    with raw(healthy[0], ports) as sock:
        for number in range(5000):
            data = bytearray(GET_NAME if number % 2 else dice.randbytes(dice.randrange(200)))
            for _ in range(dice.randrange(1, 4) if data else 0):
                data[dice.randrange(len(data))] = dice.randrange(256)
            sock.send(data)
        for size in (0, 1, 4096, 60_000):
            sock.send(b"\x30" * size)
    for device in healthy:
        assert session(device, ports).get(SYS_NAME) == device.name.encode()


def test_cpu_per_datagram_is_small(healthy: list[SimDevice], ports: Ports) -> None:
    """Under load a datagram with 25 variables costs the simulator tens of microseconds, not
    hundreds.
    """
    columns = [(1, 3, 6, 1, 2, 1, 2, 2, 1, n) for n in range(1, 23)]
    requests = [bulk(column, 25) for column in columns]
    with contextlib.ExitStack() as opened:
        socks = [opened.enter_context(raw(device, ports)) for device in healthy]
        burst(socks, requests)  # the first time a reply is planned, later it is only filled in
        before, sent = _cpu_seconds(ports.pid), 0
        while sent < 10_000:
            sent += burst(socks, requests)
        spent = _cpu_seconds(ports.pid) - before
    # Measured at 20 to 28 us; the bound leaves room for a slower and busier machine.
    assert spent / sent < 100e-6


def bulk(name: ber.Oid, repetitions: int) -> bytes:
    variables = ber.tlv(ber.SEQUENCE, ber.varbind(name, bytes((ber.NULL, 0))))
    pdu = ber.tlv(0xA5, ber.integer(99) + ber.integer(0) + ber.integer(repetitions) + variables)
    return ber.tlv(ber.SEQUENCE, ber.integer(1) + ber.octets(fleet.COMMUNITY) + pdu)


def burst(socks: list[socket.socket], requests: list[bytes]) -> int:
    """Send every request to every device, then read all responses."""
    for sock in socks:
        for request in requests:
            sock.send(request)
    for sock in socks:
        for _ in requests:
            assert sock.recv(4096)
    return len(socks) * len(requests)


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
