"""`poller snmp` prints of a real snmpd what net-snmp's own tools print, with names."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.cli import main
from poller.cli.arguments import completion
from poller.collectors.snmp.modules import module_catalog
from poller.collectors.snmp.modules.oid_names import OidNames
from tests.integration.test_collector_snmp import (
    AUTH,
    PRIV,
    Snmpd,
    free_udp_port,
    net_snmp,
    running_snmpd,
)

SECRET = "POLLER_COLLECT_SECRET"
V3 = {"kind": "snmpv3", "username": "shaaes", "auth_password": AUTH, "priv_password": PRIV}


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    with running_snmpd(tmp_path_factory.mktemp("snmpd"), free_udp_port()) as running:
        yield running


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "public")


def poller(
    capsys: pytest.CaptureFixture[str], snmpd: Snmpd, verb: str, *words: str
) -> tuple[int, str, str]:
    code = main.run(["snmp", verb, "127.0.0.1", *words, "-o", f"port={snmpd.port}"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("secret", ["public", json.dumps(V3)], ids=["v2c", "v3"])
def test_a_walk_has_every_value_with_its_type_and_name(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """A walk has the OIDs of snmpbulkwalk, and exact types with either version."""
    monkeypatch.setenv(SECRET, secret)
    code, out, err = poller(capsys, snmpd, "walk", "1.3.6.1.2.1.2", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["oid"] for line in lines] == list(
        net_snmp("snmpbulkwalk", snmpd.port, "1.3.6.1.2.1.2")
    )
    types = {line["name"].partition(".")[0]: line["type"] for line in lines}
    assert (types["ifInOctets"], types["ifSpeed"], types["ifLastChange"]) == (
        "Counter32",
        "Gauge32",
        "TimeTicks",
    )
    states = {line["text"] for line in lines if line["name"].startswith("ifOperStatus.")}
    assert "up (1)" in states
    assert re.search(rf"{len(lines):,} values in \d+ packets, \d", err)


def test_a_pipe_gets_columns_and_a_name_is_enough(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns are separated by tabs and have a header."""
    code, out, _ = poller(capsys, snmpd, "walk", "sysName")
    assert code == 0
    assert out == "oid\tname\ttype\tvalue\n1.3.6.1.2.1.1.5.0\tsysName.0\tOctetString\ttestbox\n"


def test_a_whole_module_can_be_walked(snmpd: Snmpd, capsys: pytest.CaptureFixture[str]) -> None:
    """The walk has the values of the module, with the names of its metrics."""
    code, out, _ = poller(capsys, snmpd, "walk", "host_resources")
    assert code == 0
    names = {line.split("\t")[1].partition(".")[0] for line in out.splitlines()}
    assert {
        "hrSystemUptime",
        "hrMemorySize",
        "hrStorageUsed",
        "hrStorageDescr",
        "hrDeviceDescr",
    } <= names


def test_modules_can_be_named_as_for_a_target(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str]
) -> None:
    """The walk reads one module after the other."""
    code, out, _ = poller(capsys, snmpd, "walk", "-o", "modules=[system, entity_sensor]")
    assert code == 0
    assert [line.split("\t")[1] for line in out.splitlines()[1:3]] == [
        "sysDescr.0",
        "sysObjectID.0",
    ]


def test_single_values_by_name_or_number(snmpd: Snmpd, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing value is named and exits with 1; the other values are printed."""
    code, out, err = poller(capsys, snmpd, "get", "sysName", "1.3.6.1.2.1.1.6.0", "sysDescr.7")
    assert code == 1
    assert [line.split("\t")[3] for line in out.splitlines()[1:]] == ["testbox", "Kraków, rack 7"]
    assert "sysDescr.7: the agent has no such value" in err
    assert (
        poller(capsys, snmpd, "get", "sysName", "--numeric")[1].splitlines()[1].split("\t")[1]
        == "1.3.6.1.2.1.1.5.0"
    )


def test_a_device_is_identified_with_the_reason(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has the modules of a target that names none, and the entry that decides."""
    code, out, err = poller(capsys, snmpd, "identify", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["sys_name"], found["device"], found["matched"]) == (
        "testbox",
        "net-snmp",
        "1.3.6.1.4.1.8072.3.2.*",
    )
    assert found["sys_object_id"] == "1.3.6.1.4.1.8072.3.2.10"
    assert found["modules"] == ["system", "if_mib", "host_resources", "ucd"]
    code, out, err = poller(capsys, snmpd, "identify")
    assert "matched: 1.3.6.1.4.1.8072.3.2.*" in out
    assert (
        f"poller collect snmp 127.0.0.1 -o port={snmpd.port}"
        " -o modules=system,if_mib,host_resources,ucd" in err
    )


def test_identify_uses_an_operators_table(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The output has the choice and names the file of the table."""
    table = tmp_path / "own.yml"
    table.write_text(
        "base: [system]\n"
        "match: [{sysObjectID: 1.3.6.1.4.1.8072.3.2.10, device: mine, modules: [ip_mib]}]"
    )
    code, out, _ = poller(capsys, snmpd, "identify", "--json", "-o", f"match={table}")
    found = json.loads(out)
    assert code == 0
    assert (found["device"], found["modules"]) == ("mine", ["system", "ip_mib"])
    assert str(table) in found["because"]
    _, _, err = poller(capsys, snmpd, "identify", "-o", f"match={table}")
    assert (
        err
        == f"next: poller collect snmp 127.0.0.1 -o port={snmpd.port} -o modules=system,ip_mib\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["walk", "ifInOctet"], 2, "did you mean ifInOctets?"),
        (["walk", "1.3.6.1.4.1.99999"], 3, "has nothing under 1.3.6.1.4.1.99999"),
        (["walk", "1.3.6.1.4.1.99999"], 3, "try: poller snmp walk 127.0.0.1 system -o port="),
        (["get", "ifInOctets"], 2, "one value per row"),
        (["walk", "system", "-o", "prot=1"], 2, "prot"),
        (["walk", "system", "--timeout", "soon"], 2, "soon"),
        (["get", "sysName", "-o", "modules=system"], 2, "option modules means nothing here"),
        (["walk", "-o", "identity=ifIndex"], 2, "option identity means nothing here"),
    ],
)
def test_a_mistake_is_explained(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    """The exit code and the error name the mistake."""
    found, _, err = poller(capsys, snmpd, words[0], *words[1:])
    assert (found, text in err) == (code, True), err


def test_a_silent_address_fails_within_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    """The command exits with 1 and an error code, and prints no secret."""
    started = time.monotonic()
    code = main.run(
        ["snmp", "identify", "127.0.0.1", "-o", f"port={free_udp_port()}", "--timeout", "1s"]
    )
    captured = capsys.readouterr()
    assert code == 1
    assert "error[P11" in captured.err
    assert "public" not in captured.out + captured.err
    assert time.monotonic() - started < 3


def test_a_long_walk_prints_each_page_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    """A slow agent's first values are printed at once; Ctrl-C exits with 130 and a summary."""
    agent = tmp_path / "agent.py"
    agent.write_text(SLOW_AGENT)
    serving = subprocess.Popen([sys.executable, agent], stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    port = serving.stdout.readline().strip()
    try:
        command = [
            sys.executable,
            "-m",
            "poller",
            "snmp",
            "walk",
            "127.0.0.1",
            "1.3.6.1.4.1.5",
            "-o",
            f"port={port}",
        ]
        walking = subprocess.Popen(
            [*command, "-o", "max_repetitions=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert walking.stdout is not None
        assert walking.stdout.readline().startswith("oid\t")
        assert walking.stdout.readline() == "1.3.6.1.4.1.5.1\t1.3.6.1.4.1.5.1\tInteger32\t1\n"
        walking.send_signal(signal.SIGINT)
        _, err = walking.communicate(timeout=20)
        assert walking.returncode == 130
        assert re.search(r"\d+ values? in \d+ packets?, ", err)
        assert "Traceback" not in err
    finally:
        serving.terminate()
        serving.wait(timeout=10)


#: An agent that sends one value per response, after 50 ms, each with the next OID.
SLOW_AGENT = """
import socket, time
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto import api
v2c = api.PROTOCOL_MODULES[api.SNMP_VERSION_2C]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", 0))
print(sock.getsockname()[1], flush=True)
number = 0
while True:
    data, peer = sock.recvfrom(65535)
    request, _ = decoder.decode(data, asn1Spec=v2c.Message())
    number += 1
    time.sleep(0.05)
    reply = v2c.apiMessage.get_response(request)
    pdu = v2c.apiMessage.get_pdu(reply)
    v2c.apiPDU.set_varbinds(pdu, [((1, 3, 6, 1, 4, 1, 5, number), v2c.Integer(number))])
    sock.sendto(encoder.encode(reply), peer)
"""


def test_completion_offers_names_of_modules() -> None:
    """A walk accepts every offered name."""
    offered = completion.snmp_names("ifHCIn")
    assert "ifHCInOctets" in offered
    names = OidNames(module_catalog.built_in())
    assert all(
        names.scopes(name)
        for name in (*offered, *completion.snmp_names("hr"), *completion.snmp_names("if_"))
    )


def test_a_terminal_gets_lines_without_a_header(snmpd: Snmpd) -> None:
    """A line has name, type and value."""
    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "poller",
        "snmp",
        "get",
        "127.0.0.1",
        "sysName",
        "-o",
        f"port={snmpd.port}",
    ]
    process = subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL)
    os.close(follower)
    text = b""
    while b"testbox" not in text and select.select([leader], [], [], 20)[0]:
        text += os.read(leader, 4096)
    process.wait(timeout=20)
    os.close(leader)
    assert text.decode().strip() == "sysName.0 = OctetString: testbox"
