"""`ADDRESS:PORT` in commands, files and bodies: the port is an option of one target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from poller.bootstrap import Services
from tests.integration import api_clients
from tests.integration.commands import Cli, ok


def stored(cli: Cli, device: str) -> tuple[str, dict[str, Any]]:
    """The address of a device, and the options of its targets by name."""
    shown = ok(cli("device", "show", device, "--json")).json
    return shown["address"], {target["name"]: target["options"] for target in shown["targets"]}


def test_a_device_is_added_and_moved_with_the_port_of_its_address(cli: Cli) -> None:
    """The port is said and stored as an option, also when the address changes; filters match."""
    added = ok(cli("device", "add", "sw1", "[2001:db8::1]:1161", "--collector", "snmp"))
    assert "note: port 1161 is the option port of target snmp" in added.err
    assert stored(cli, "sw1") == ("2001:db8::1", {"snmp": {"port": 1161}})
    ok(cli("target", "add", "sw1", "--collector", "ping"))

    planned = ok(cli("device", "edit", "sw1", "--address", "192.0.2.1:1162", "--dry-run"))
    assert "port 1162 is the option port of target snmp" in planned.err
    ok(cli("device", "edit", "sw1", "--address", "192.0.2.1:1162"))
    assert stored(cli, "sw1") == ("192.0.2.1", {"snmp": {"port": 1162}, "ping": {}})
    ok(cli("device", "edit", "sw1", "--address", "192.0.2.2"))
    assert stored(cli, "sw1")[1]["snmp"] == {"port": 1162}, "an address alone changes no port"
    listed = ok(cli("device", "list", "--where", "address:192.0.2.2", "--json")).json
    assert [item["name"] for item in listed["items"]] == ["sw1"]

    audit = ok(cli("audit", "--json")).json["items"]
    edits = [row for row in audit if row["action"] == "target.edit"]
    assert [(row["subject"], row["after"]) for row in edits] == [
        ("sw1/snmp", {"options": {"port": 1162}})
    ]


def test_two_devices_behind_one_address_stay_apart(cli: Cli) -> None:
    """The port tells them apart, and neither hides the other from a filter."""
    for port in (1161, 1162):
        words = ["device", "add", f"nat-{port}", f"192.0.2.1:{port}", "--collector", "snmp"]
        ok(cli(*words))
    assert [stored(cli, f"nat-{port}")[1]["snmp"]["port"] for port in (1161, 1162)] == [1161, 1162]
    listed = ok(cli("device", "list", "--where", "address:192.0.2.1", "--json")).json["items"]
    assert [item["name"] for item in listed] == ["nat-1161", "nat-1162"]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["192.0.2.1:70000"], 'the address "192.0.2.1:70000" is not', "[2001:db8::1]:161"),
        (["192.0.2.1:22"], "no target of the device takes a port from it", "--collector snmp"),
        (["192.0.2.1:22", "--collector", "smnp"], 'unknown collector "smnp"', "snmp"),
        (
            ["192.0.2.1:1161", "--collector", "snmp", "-o", "port=161"],
            "the address has the port 1161, and the option port is 161",
            "give the port once",
        ),
    ],
)
def test_a_port_that_means_nothing_is_refused(
    cli: Cli, words: list[str], message: str, hint: str
) -> None:
    """No device is added, and the hint says what to write."""
    refused = cli("device", "add", "x", *words, "--json")
    assert refused.code in (2, 3)
    assert message in str(refused.error)
    assert hint in str(refused.error)


def test_an_edit_with_a_port_for_two_targets_is_refused(cli: Cli) -> None:
    """The hint names the option to set, and the address stays."""
    ok(cli("device", "add", "sw1", "192.0.2.1", "--collector", "snmp"))
    ok(cli("target", "add", "sw1", "--collector", "http"))
    refused = cli("device", "edit", "sw1", "--address", "192.0.2.9:8080")
    assert "the targets http and snmp have a port each" in refused.err
    assert "-o port=8080" in refused.err
    assert stored(cli, "sw1")[0] == "192.0.2.1"


FILES = {
    "fleet.csv": "name,address,collector\nsw1,192.0.2.1:1161,snmp\n",
    "fleet.json": '[{"name": "sw1", "address": "192.0.2.1:1161", "targets": '
    '[{"collector": "snmp"}]}]',
    "fleet.yaml": "- name: sw1\n  address: 192.0.2.1:1161\n  targets: [{collector: snmp}]\n",
}


@pytest.mark.parametrize("file", FILES)
def test_a_file_may_have_ports_in_its_addresses(cli: Cli, tmp_path: Path, file: str) -> None:
    """The same file again changes nothing; an export has the port among the options."""
    (tmp_path / file).write_text(FILES[file])
    ok(cli("device", "import", file))
    assert stored(cli, "sw1") == ("192.0.2.1", {"snmp": {"port": 1161}})
    again = ok(cli("device", "import", file, "--update", "--json")).json
    assert (again["updated"], again["targets_updated"], again["targets_unchanged"]) == (0, 0, 1)

    exported = ok(cli("device", "export", "--format", "csv")).out
    (tmp_path / "exported.csv").write_text(exported)
    assert ",192.0.2.1," in exported
    assert ok(cli("device", "import", "exported.csv", "--update", "--json")).json["updated"] == 0


def test_a_file_without_targets_moves_a_device_and_keeps_its_other_options(
    cli: Cli, tmp_path: Path
) -> None:
    """The port of the address replaces the port of the one target that has any."""
    ok(cli("device", "add", "sw1", "192.0.2.1:1161", "--collector", "snmp", "-o", "retries=1"))
    (tmp_path / "moved.csv").write_text("name,address\nsw1,192.0.2.2:1162\n")
    done = ok(cli("device", "import", "moved.csv", "--update", "--json")).json
    assert (done["updated"], done["targets_updated"]) == (1, 1)
    assert stored(cli, "sw1") == ("192.0.2.2", {"snmp": {"port": 1162, "retries": 1}})


def test_a_port_of_a_file_that_no_target_takes_is_a_problem_of_its_line(
    cli: Cli, tmp_path: Path
) -> None:
    """The problem names the line and the field."""
    (tmp_path / "fleet.csv").write_text("name,address,collector\nsw1,192.0.2.1:22,ping\n")
    refused = cli("device", "import", "fleet.csv", "--json")
    [problem] = refused.error["details"]
    assert (problem["line"], problem["field"]) == (2, "address")
    assert "no target of the device takes a port" in problem["message"]


def test_a_body_of_the_api_may_have_a_port_in_its_address(services: Services) -> None:
    """The answer notes where the port went; a port that means nothing is a 422."""
    with api_clients.client(services) as client:
        body = {"name": "sw1", "address": "192.0.2.1:1161", "targets": [{"collector": "snmp"}]}
        added = client.post("/api/v1/devices", json=body)
        assert added.json()["address"] == "192.0.2.1"
        assert "port 1161 is the option port of target snmp" in added.json()["notes"]
        moved = client.patch("/api/v1/devices/sw1", json={"address": "192.0.2.2:1162"})
        assert moved.json()["notes"] == ["port 1162 is the option port of target snmp"]
        [target] = client.get("/api/v1/devices/sw1").json()["targets"]
        assert target["options"] == {"port": 1162}
        body = {"name": "sw2", "address": "192.0.2.1:22", "targets": [{"collector": "ping"}]}
        refused = client.post("/api/v1/devices", json=body)
        assert refused.status_code == 422, refused.text


def test_a_target_that_risks_its_password_is_saved_with_a_warning(cli: Cli, tmp_path: Path) -> None:
    """Adding, editing and importing name the option that ends the risk."""
    words = ["device", "add", "r1", "192.0.2.1:8730", "--collector", "routeros"]
    assert "give ca_file, fingerprint or tls=true" in ok(cli(*words)).err
    ok(cli("target", "edit", "r1", "routeros", "-o", "insecure=true"))
    edited = ok(cli("target", "edit", "r1", "routeros", "-o", "insecure=", "-o", "tls=false"))
    assert "tls=false sends the password in clear" in edited.err
    lines = ["name,address,collector", "r2,192.0.2.2,routeros", "r3,192.0.2.3,routeros"]
    (tmp_path / "fleet.csv").write_text("\n".join(lines) + "\n")
    assert (
        "note: 2 targets: the router's certificate" in ok(cli("device", "import", "fleet.csv")).err
    )
