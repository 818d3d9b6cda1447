"""`poller snmp` says of a real snmpd what net-snmp's own tools say of it, in words people understand."""

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
    """The same OIDs as snmpbulkwalk's, and exact types with either version."""
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
    """Tab-separated, with a head."""
    code, out, _ = poller(capsys, snmpd, "walk", "sysName")
    assert code == 0
    assert out == "oid\tname\ttype\tvalue\n1.3.6.1.2.1.1.5.0\tsysName.0\tOctetString\ttestbox\n"


def test_a_whole_module_can_be_walked(snmpd: Snmpd, capsys: pytest.CaptureFixture[str]) -> None:
    """What it would read, with the names it gives."""
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
    """All that they read, one after the other."""
    code, out, _ = poller(capsys, snmpd, "walk", "-o", "modules=[system, entity_sensor]")
    assert code == 0
    assert [line.split("\t")[1] for line in out.splitlines()[1:3]] == [
        "sysDescr.0",
        "sysObjectID.0",
    ]


def test_single_values_by_name_or_number(snmpd: Snmpd, capsys: pytest.CaptureFixture[str]) -> None:
    """One that the agent lacks is named, the others are printed, and the exit code tells."""
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
    """What a target without modules would read, and which entry says so."""
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
        f"poller collect snmp 127.0.0.1 -o port={snmpd.port} -o modules=system,if_mib,host_resources,ucd"
        in err
    )


def test_a_table_of_ones_own_can_be_tried(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The choice, and the file that made it."""
    table = tmp_path / "own.yml"
    table.write_text(
        "base: [system]\nmatch: [{sysObjectID: 1.3.6.1.4.1.8072.3.2.10, device: mine, modules: [ip_mib]}]"
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
def test_what_cannot_be_done_is_explained(
    snmpd: Snmpd, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    """Before anything is sent, where that is possible."""
    found, _, err = poller(capsys, snmpd, words[0], *words[1:])
    assert (found, text in err) == (code, True), err


def test_nobody_there_is_an_answer_within_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and what may be the cause; the secret is in neither."""
    began = time.monotonic()
    code = main.run(
        ["snmp", "identify", "127.0.0.1", "-o", f"port={free_udp_port()}", "--timeout", "1s"]
    )
    captured = capsys.readouterr()
    assert code == 1
    assert "error[P11" in captured.err
    assert "public" not in captured.out + captured.err
    assert time.monotonic() - began < 3


def test_a_long_walk_is_seen_as_it_comes_and_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    """Values of the first answers are there while an agent is slow; then 130, the count, and no traceback."""
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


#: Answers one value each time, an OID further, and takes its time.
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
    asked, _ = decoder.decode(data, asn1Spec=v2c.Message())
    number += 1
    time.sleep(0.05)
    reply = v2c.apiMessage.get_response(asked)
    pdu = v2c.apiMessage.get_pdu(reply)
    v2c.apiPDU.set_varbinds(pdu, [((1, 3, 6, 1, 4, 1, 5, number), v2c.Integer(number))])
    sock.sendto(encoder.encode(reply), peer)
"""


def test_the_tab_key_offers_names_of_modules() -> None:
    """The very names that a walk takes."""
    offered = completion.snmp_names("ifHCIn")
    assert "ifHCInOctets" in offered
    known = OidNames(module_catalog.built_in())
    assert all(
        known.scopes(name)
        for name in (*offered, *completion.snmp_names("hr"), *completion.snmp_names("if_"))
    )


def test_on_a_terminal_a_line_reads_like_a_sentence(snmpd: Snmpd) -> None:
    """Name, type, value; no head."""
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
