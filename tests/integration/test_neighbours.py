"""Parents are suggested from neighbours that real polls of simulated agents read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from poller.bootstrap import Services
from poller.collectors.snmp import SnmpCollector
from poller.db.alerts import parent_rows
from poller.db.inventory import devices, targets
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.sim import fleet, linked_fleet
from poller.sim.fleet import Protocol, SimDevice
from poller.sim.neighbours import LinkProtocol
from poller.sim.sim_process import simulated
from tests.integration import api_clients
from tests.integration.commands import Cli, ok
from tests.integration.test_collector_snmp import PUBLIC
from tests.unit.collectors.polls import by_series, outcome

NOW = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def switches() -> list[SimDevice]:
    """Four switches of one site, all linked with the first: two by LLDP, two by CDP."""
    pool = [
        replace(each, site="ams")
        for each in fleet.devices(20, faulty_share=0)
        if each.protocol is Protocol.SNMP
    ][:5]
    core = pool[0]
    by_lldp = linked_fleet.linked(pool[:3])
    by_cdp = linked_fleet.linked([core, *pool[3:]], LinkProtocol.CDP)
    both = replace(by_lldp[0], neighbours=by_lldp[0].neighbours + by_cdp[0].neighbours)
    return [both, *by_lldp[1:], *by_cdp[1:]]


@pytest.fixture(scope="module")
def port(switches: list[SimDevice]) -> Iterator[int]:
    with simulated(switches) as running:
        yield running.snmp


@pytest.fixture
def polled(services: Services, switches: list[SimDevice], port: int) -> list[str]:
    """The names of the switches, after a poll of each with the module `lldp` was stored."""
    batch = []
    for switch in switches:
        options = {"modules": ["lldp"], "port": port}
        target = TargetDraft(name="neighbours", collector="snmp", options=options)
        draft = DeviceDraft(switch.name, switch.address, site="ams")
        devices.add(services.engine, draft, [target])
        result = outcome(SnmpCollector(), switch.address, PUBLIC, port=port, modules="lldp")
        assert result.readings is not None, result.message
        stored = targets.show(services.engine, switch.name, "neighbours")
        batch.append(Stored(stored.id, NOW, result.readings))
    stored_readings.Writer(services.engine).write(batch, NOW)
    return [switch.name for switch in switches]


def test_the_module_reads_who_is_at_which_port(switches: list[SimDevice], port: int) -> None:
    """One sample for each neighbour; the time mark, which changes by itself, is left out."""
    core, child = switches[:2]
    result = outcome(SnmpCollector(), core.address, PUBLIC, port=port, modules="lldp")
    seen = [dict(labels) for name, labels in by_series(result) if name == "lldpRemChassisIdSubtype"]
    assert {labels["lldpRemSysName"] for labels in seen} == {
        f"{each.name}.example.net" for each in switches[1:3]
    }
    [first] = [labels for labels in seen if labels["lldpRemSysName"].startswith(child.name)]
    assert first["lldpRemChassisId"].lower() == f"0x{core_mac(child):012x}"
    assert first["lldpRemPortId"] == first["lldpRemPortDesc"] != ""
    assert first["lldpLocPortDesc"] != ""
    assert "lldpRemTimeMark" not in first
    by_cdp = [dict(labels) for name, labels in by_series(result) if name == "cdpCacheDeviceId"]
    assert {labels["cdpCacheAddress"] for labels in by_cdp} == {
        each.address for each in switches[3:]
    }


def core_mac(device: SimDevice) -> int:
    from poller.sim import hardware

    return hardware.first_mac(device.salt)


def test_suggestions_are_accepted_by_a_person(
    cli: Cli, services: Services, polled: list[str]
) -> None:
    """Nothing is stored before; afterwards each switch hangs on the core, and nothing is new."""
    core, *others = polled
    listed = ok(cli("device", "parents", "--suggested", "--json")).json
    assert {each["device"]: each["parent"] for each in listed["items"]} == dict.fromkeys(
        others, core
    )
    assert {each["state"] for each in listed["items"]} == {"new"}
    assert "the device with the most links of its network" in listed["items"][0]["reason"]
    assert parent_rows.listing(services.engine) == []

    one = ok(cli("device", "parents", others[0], "--accept", "--yes", "--json")).json["items"]
    assert [each["device"] for each in one] == [others[0]]
    ok(cli("device", "parents", "--accept", "--yes"))
    stored = parent_rows.listing(services.engine)
    assert {each.device: each.parent for each in stored} == dict.fromkeys(others, core)
    assert {each.source for each in stored} == {"neighbours"}
    again = ok(cli("device", "parents", "--suggested", "--json")).json["items"]
    assert {each["state"] for each in again} == {"same"}
    assert core in ok(cli("device", "parents")).out


def test_a_parent_by_hand_stays(cli: Cli, polled: list[str]) -> None:
    """A suggestion that differs is a change, which is accepted by name only."""
    core, first, second, *_ = polled
    ok(cli("device", "parent", first, second))
    assert ok(cli("device", "parent", first)).out == f"{second}\n"
    ok(cli("device", "parents", "--accept", "--yes", "--core", core))
    assert ok(cli("device", "parent", first)).out == f"{second}\n"
    changed = ok(cli("device", "parents", "--suggested", "--core", core, "--json")).json["items"]
    [of_first] = [each for each in changed if each["device"] == first]
    assert (of_first["state"], of_first["stored"]) == ("change", second)
    ok(cli("device", "parents", first, "--accept", "--yes", "--core", core))
    assert ok(cli("device", "parent", first)).out == f"{core}\n"
    refused = cli("device", "parent", core, first, "--json").error["message"]
    assert refused == f"parent: the chain of parents goes round: {core} -> {first} -> {core}"
    assert ok(cli("device", "parent", first, "--none")).out == f"{first} has no parent\n"


def test_the_api_suggests_and_accepts(services: Services, polled: list[str]) -> None:
    """With the rights that edits of devices need."""
    core, *others = polled
    api = api_clients.client(services)
    found = api.get("/api/v1/parents/suggestions", params={"core": core}).json()
    assert (found["devices_read"], found["unknown_neighbours"]) == (5, 0)
    reader = api_clients.client(services, [Scope.OPERATE])
    assert reader.post("/api/v1/parents/accept", json={}).status_code == 403
    done = api.post("/api/v1/parents/accept", json={"devices": others[:1], "cores": [core]})
    assert [each["device"] for each in done.json()["items"]] == others[:1]
    [stored] = api.get("/api/v1/parents").json()["items"]
    assert stored == {"device": others[0], "parent": core, "source": "neighbours"}
    unknown = api.post("/api/v1/parents/accept", json={"devices": ["nobody"]})
    assert unknown.status_code == 404
    edited = api.patch(f"/api/v1/devices/{others[0]}", json={"parent": ""})
    assert edited.json()["parent"] == ""
    elsewhere = api_clients.client(services, site="ber")
    assert elsewhere.get("/api/v1/parents/suggestions").json()["items"] == []


def test_a_parent_of_another_site_stays(services: Services, polled: list[str]) -> None:
    """A token of one site sees that somebody chose it, and does not replace it unseen."""
    core, first, *_ = polled
    devices.add(services.engine, DeviceDraft("hq", "127.0.0.9", site="hq"))
    api_clients.client(services).patch(f"/api/v1/devices/{first}", json={"parent": "hq"})
    ours = api_clients.client(services, site="ams")
    found = ours.get("/api/v1/parents/suggestions", params={"core": core}).json()["items"]
    [of_first] = [each for each in found if each["device"] == first]
    assert (of_first["state"], of_first["stored"]) == ("change", "hq")
    done = ours.post("/api/v1/parents/accept", json={"cores": [core]}).json()["items"]
    assert first not in {each["device"] for each in done}
