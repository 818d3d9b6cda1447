"""The SNMP collector reads from a real snmpd what net-snmp's own tools read from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.modules import module_catalog
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import Kind
from tests.unit.collectors.polls import by_series, open_files, outcome, polled

PUBLIC = Community.from_text("public")
AUTH, PRIV = "authpass123", "privpass123"
IF_TABLE, IF_X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
#: Columns that are only labels: ifDescr, ifName, ifAlias.
LABELS_ONLY = (f"{IF_TABLE}.2.", f"{IF_X_TABLE}.1.", f"{IF_X_TABLE}.18.")
USERS = [
    ("md5des", "MD5", "DES"),
    ("shaaes", "SHA", "AES"),
    ("sha256aes", "SHA256", "AES"),
    ("sha512aes", "SHA512", "AES"),
    ("sha384aes", "SHA384", "AES"),
    ("md5aes256", "MD5", "AES256"),
    ("shaaes192", "SHA", "AES192"),
    ("shaaes192c", "SHA", "AES192C"),
    ("shaaes256", "SHA", "AES256"),
    ("shaaes256c", "SHA", "AES256C"),
    ("sha512aes256", "SHA512", "AES256"),
    ("shaonly", "SHA", None),
]


class Snmpd(NamedTuple):
    port: int
    ipv6: bool


def missing(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def free_udp_port() -> int:
    """A port below the ephemeral range, so that it stays free while a daemon restarts on it."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe,
            contextlib.suppress(OSError),
        ):
            probe.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            return int(probe.getsockname()[1])


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def configuration(port: int, ipv6: bool, engine_id: str) -> str:
    lines = [
        f"agentaddress udp:127.0.0.1:{port}" + (f",udp6:[::1]:{port}" if ipv6 else ""),
        "rocommunity public 127.0.0.1",
        "rocommunity6 public ::1" if ipv6 else "",
        f"exactEngineID {engine_id}",
        "sysLocation Kraków, rack 7",
        "sysContact nobody",
        "sysName testbox",
    ]
    for name, auth, priv in USERS:
        auth = re.sub(r"SHA(\d)", r"SHA-\1", auth)
        lines.append(f'createUser {name} {auth} "{AUTH}"' + (f' {priv} "{PRIV}"' if priv else ""))
        lines.append(f"rouser {name} {'priv' if priv else 'auth'}")
    return "\n".join(lines) + "\n"


@contextmanager
def running_snmpd(
    directory: Path,
    port: int,
    engine_id: str = "0x80001f8880aabbccdd",
    more: str = "",
    name: str = "testbox",
) -> Iterator[Snmpd]:
    for tool in ("snmpd", "snmpget", "snmpbulkwalk"):
        if shutil.which(tool) is None:
            missing(f"{tool} is not installed")
    directory.mkdir(exist_ok=True)
    ipv6 = has_ipv6()
    config = directory / "snmpd.conf"
    config.write_text(
        configuration(port, ipv6, engine_id).replace("sysName testbox", f"sysName {name}") + more
    )
    environment = {
        **os.environ,
        "SNMP_PERSISTENT_DIR": str(directory / "state"),
        "MIBS": "",
    }
    command = ["snmpd", "-C", "-c", str(config), "-f", "-Lf", str(directory / "log")]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(process, port)
        yield Snmpd(port, ipv6)
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"snmpd ended with status {process.returncode}")
        if net_snmp("snmpget", port, "1.3.6.1.2.1.1.5.0", check=False):
            return
    pytest.fail("snmpd did not answer within 20 s")


def net_snmp(tool: str, port: int, oid: str, check: bool = True) -> dict[str, str]:
    """{oid: text} as net-snmp prints it, without MIBs: an oracle that shares no code with us."""
    command = [
        tool,
        "-v2c",
        "-c",
        "public",
        "-t",
        "1",
        "-On",
        "-Oe",
        "-Ot",
        f"127.0.0.1:{port}",
        oid,
    ]
    environment = {**os.environ, "MIBS": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=check)
    pairs = (line.partition(" = ") for line in done.stdout.splitlines() if " = " in line)
    return {name.removeprefix("."): value for name, _, value in pairs}


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    with running_snmpd(tmp_path_factory.mktemp("snmpd"), free_udp_port()) as daemon:
        yield daemon


def poll(daemon: Snmpd, credential: Credential = PUBLIC, **more: Any) -> Outcome:
    settings = {"modules": "system, if_mib", **more}
    return outcome(
        SnmpCollector(),
        settings.pop("address", "127.0.0.1"),
        credential,
        port=daemon.port,
        **settings,
    )


def text_of(printed: str) -> str:
    """The text in net-snmp's `STRING: "eth0"`."""
    return printed.removeprefix("STRING: ").strip('"')


def number_of(printed: str) -> int | None:
    match = re.fullmatch(
        r"(?:(?:INTEGER|Counter32|Counter64|Gauge32|Timeticks): )?(-?[0-9]+)", printed
    )
    return int(match[1]) if match else None


def interfaces(port: int) -> dict[str, str]:
    return {
        **net_snmp("snmpbulkwalk", port, "1.3.6.1.2.1.2"),
        **net_snmp("snmpbulkwalk", port, "1.3.6.1.2.1.31.1.1"),
    }


def test_interfaces_are_what_snmpbulkwalk_shows(snmpd: Snmpd) -> None:
    """Every row of both tables: name, labels, and a value between two walks of net-snmp."""
    before = interfaces(snmpd.port)
    result = poll(snmpd, modules="if_mib")
    after = interfaces(snmpd.port)
    assert result.result is Result.OK, result.message
    found = by_series(result)
    metrics = {metric.oid: metric for metric in module_catalog.built_in()["if_mib"].metrics}
    checked = 0
    for oid, printed in before.items():
        if oid.startswith(LABELS_ONLY):
            continue
        column, _, index = oid.rpartition(".")
        metric, low, high = metrics[column], number_of(printed), number_of(after[oid])
        if low is None or high is None or metric.type == "EnumAsInfo":
            continue
        labels: dict[str, str] = {}
        if metric.indexes:
            name, descr, alias = (
                f"{IF_X_TABLE}.1.{index}",
                f"{IF_TABLE}.2.{index}",
                f"{IF_X_TABLE}.18.{index}",
            )
            labels = {"ifIndex": index, "ifName": text_of(before[name])}
            labels |= {"ifDescr": text_of(before[descr]), "ifAlias": text_of(before[alias])}
        value = found.pop((metric.name, tuple(sorted(labels.items()))))
        assert min(low, high) <= value <= max(low, high), oid
        checked += 1
    assert checked > 30
    assert {name for name, _ in found} == {
        "sysUpTime",
        "ifType_info",
        "ifPhysAddress",
        "ifSpecific",
    }


def test_the_loopback_interface_has_text_labels(snmpd: Snmpd) -> None:
    """Enumerations and addresses are texts."""
    readings = poll(snmpd, modules="if_mib").readings
    assert readings is not None
    lo = {reading.name: reading for reading in readings if reading.labels.get("ifDescr") == "lo"}
    assert lo["ifType_info"].labels["ifType"] == "softwareLoopback"
    assert lo["ifPhysAddress"].labels["ifPhysAddress"] == "00:00:00:00:00:00"
    assert (lo["ifHCInOctets"].kind, lo["ifOperStatus"].kind) == (Kind.COUNTER, Kind.GAUGE)


def test_the_system_group(snmpd: Snmpd) -> None:
    """One GET reads the group; its texts are labels in UTF-8."""
    found = by_series(poll(snmpd, modules="system"))
    assert found["sysName", (("sysName", "testbox"),)] == 1
    assert found["sysLocation", (("sysLocation", "Kraków, rack 7"),)] == 1
    assert found["sysObjectID", (("sysObjectID", "1.3.6.1.4.1.8072.3.2.10"),)] == 1
    assert found["sysUpTime", ()] > 0


def test_without_modules_those_that_suit_the_device_are_read(snmpd: Snmpd) -> None:
    """A host with net-snmp has more than interfaces; later polls do not choose again."""
    memory: dict[str, Any] = {}
    first, second = (set(by_series(poll(snmpd, modules="", memory=memory))) for _ in range(2))
    assert {"sysUpTime", "ifMtu", "hrSystemProcesses"} <= {name for name, _ in first}
    assert {name for name, _ in first ^ second} <= {
        "hrSWRunName",
        "hrSWRunPerfCPU",
        "hrSWRunPerfMem",
    }


def test_version_1_reads_the_same_but_for_64_bits(snmpd: Snmpd) -> None:
    """SNMPv1 has no Counter64; everything else is read."""
    two, one = (set(by_series(poll(snmpd, version=version))) for version in ("2c", "1"))
    assert one < two
    counted = ("Octets", "UcastPkts", "MulticastPkts", "BroadcastPkts")
    wide = {f"ifHC{direction}{what}" for direction in ("In", "Out") for what in counted}
    assert {name for name, _ in two - one} <= wide


@pytest.mark.parametrize("size", [1, 2, 7, 25, 200])
def test_the_size_of_requests_changes_nothing(snmpd: Snmpd, size: int) -> None:
    usual = set(by_series(poll(snmpd)))
    assert set(by_series(poll(snmpd, max_repetitions=size))) == usual


def test_host_names_and_ipv6(snmpd: Snmpd) -> None:
    assert poll(snmpd, address="localhost", modules="system").result is Result.OK
    if snmpd.ipv6:
        assert poll(snmpd, address="::1", modules="system").result is Result.OK


def v3(name: str, auth: str, priv: str | None, **other: str) -> SnmpV3:
    fields = {"username": name, "auth_protocol": auth, "auth_password": AUTH}
    if priv:
        fields |= {"priv_protocol": priv, "priv_password": PRIV}
    return SnmpV3.from_fields({**fields, **other})


@pytest.mark.parametrize(("name", "auth", "priv"), USERS)
def test_version_3(snmpd: Snmpd, name: str, auth: str, priv: str | None) -> None:
    """The credential selects version 3, its protocols and its security level."""
    result = poll(snmpd, v3(name, auth, priv))
    assert result.result is Result.OK, result.message
    assert ("sysName", (("sysName", "testbox"),)) in by_series(result)


WRONG_USERS = [
    v3("shaaes", "SHA", "AES", auth_password="wrong-password"),
    v3("nobody", "SHA", "AES"),
    v3("shaaes", "SHA256", "AES"),
]


@pytest.mark.parametrize("credential", WRONG_USERS)
def test_a_wrong_version_3_user_is_refused_not_silent(snmpd: Snmpd, credential: SnmpV3) -> None:
    result = poll(snmpd, credential)
    assert (result.result, result.error_code) == (Result.FAILED, "auth_failed")
    assert "wrong-password" not in result.message


def test_a_wrong_privacy_password_is_named_and_not_a_dead_device(snmpd: Snmpd) -> None:
    """snmpd answers the discovery, and is silent about a request that it cannot decrypt.

    The retries use up the time of the poll.
    """
    collector = SnmpCollector()
    wrong = v3("shaaes", "SHA", "AES", priv_password="wrong-password")
    for _ in range(2):
        result = outcome(
            collector,
            "127.0.0.1",
            wrong,
            timeout_s=1.0,
            port=snmpd.port,
            modules="system",
            timeout=0.4,
        )
        assert (result.result, result.error_code) == (Result.FAILED, "timeout")
        assert "answered the SNMPv3 discovery and none of our requests (2 tries" in result.message
        assert "wrong privacy password or protocol" in result.message
        assert "wrong-password" not in result.message


def test_a_replaced_version_3_agent_is_discovered_again(tmp_path: Path) -> None:
    """The new engine id is learned within the poll, and is no authentication failure."""
    collector, credential, port = SnmpCollector(), v3("shaaes", "SHA", "AES"), free_udp_port()
    memory: dict[str, Any] = {}
    for name, engine_id in (("first", "0x80001f8880aabbccdd"), ("second", "0x80001f8880eeff0011")):
        with running_snmpd(tmp_path / name, port, engine_id):
            for _ in range(2):
                result = outcome(
                    collector, "127.0.0.1", credential, memory=memory, port=port, modules="system"
                )
                assert result.result is Result.OK, (name, result.message)


def test_the_wrong_community_is_a_timeout_that_does_not_repeat_it(snmpd: Snmpd) -> None:
    result = poll(
        snmpd, Community.from_text("not-the-community"), timeout_s=5, timeout=0.2, retries=1
    )
    assert (result.result, result.error_code) == (Result.FAILED, "timeout")
    assert f"no answer from 127.0.0.1 port {snmpd.port} (2 tries in 0.5 s)" in result.message
    assert "not-the-community" not in result.message


def test_a_closed_port_is_unreachable_not_a_timeout() -> None:
    result = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=free_udp_port())
    assert (result.result, result.error_code) == (Result.FAILED, "unreachable")


def test_a_missing_credential_is_named(snmpd: Snmpd) -> None:
    result = outcome(SnmpCollector(), "127.0.0.1", None, port=snmpd.port)
    assert result.error_code == "auth_failed"
    assert "community or snmpv3" in result.message


def test_a_repeat_poll_reuses_its_series_and_requests_the_known_rows(snmpd: Snmpd) -> None:
    """The series object of the second poll is the first one's."""

    async def run() -> list[Outcome]:
        collector, memory = SnmpCollector(), {}  # type: ignore[var-annotated]
        return [
            (await polled(collector, "127.0.0.1", PUBLIC, memory=memory, port=snmpd.port)).outcome
            for _ in range(3)
        ]

    first, *rest = [result.readings for result in asyncio.run(run())]
    assert first is not None
    assert all(readings is not None and readings.series is first.series for readings in rest)


def test_many_parallel_polls_leave_no_socket(snmpd: Snmpd) -> None:
    """Two hundred parallel polls, half of them of closed ports."""

    async def run() -> list[Outcome]:
        collector = SnmpCollector()
        closed = free_udp_port()
        jobs = [
            polled(collector, "127.0.0.1", PUBLIC, port=port, modules="system", timeout=5)
            for port in (snmpd.port, closed) * 100
        ]
        return [drained.outcome for drained in await asyncio.gather(*jobs)]

    outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port)
    before = open_files()
    results = asyncio.run(run())
    assert [result.result for result in results] == [Result.OK, Result.FAILED] * 100
    assert open_files() <= before  # fewer if garbage of earlier tests was collected
