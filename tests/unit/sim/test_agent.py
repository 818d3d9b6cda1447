"""The agent, tested with pysnmp's codec, which is independent of our BER."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import pytest
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto import api

from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp import agent as agents
from poller.sim.snmp.agent import Agent

NOW = device_traffic.EPOCH + 100 * device_traffic.DAY
SYSTEM = "1.3.6.1.2.1.1"
IF_ENTRY = "1.3.6.1.2.1.2.2.1"
IF_X_ENTRY = "1.3.6.1.2.1.31.1.1.1"
V1, V2C = api.SNMP_VERSION_1, api.SNMP_VERSION_2C
NO_SUCH_NAME, TOO_BIG, NOT_WRITABLE = 2, 1, 17


def device(model: str = "access-8", **changes: Any) -> SimDevice:
    found = next(d for d in fleet.devices(400, faulty_share=0) if d.model == model)
    return dataclasses.replace(found, **changes)


@pytest.fixture
def agent() -> Agent:
    return Agent(device())


def ask(
    agent: Agent,
    kind: str,
    *names: str,
    version: int = V2C,
    community: str = fleet.COMMUNITY,
    request_id: int = 7,
    bulk: tuple[int, int] = (0, 10),
) -> bytes:
    codec = api.PROTOCOL_MODULES[version]
    pdu = getattr(codec, f"{kind}PDU")()
    if kind == "GetBulkRequest":
        api.v2c.apiBulkPDU.set_defaults(pdu)
        api.v2c.apiBulkPDU.set_non_repeaters(pdu, bulk[0])
        api.v2c.apiBulkPDU.set_max_repetitions(pdu, bulk[1])
    else:
        codec.apiPDU.set_defaults(pdu)
    codec.apiPDU.set_request_id(pdu, request_id)
    codec.apiPDU.set_varbinds(pdu, [(name, codec.Null("")) for name in names])
    message = codec.Message()
    codec.apiMessage.set_defaults(message)
    codec.apiMessage.set_community(message, community)
    codec.apiMessage.set_pdu(message, pdu)
    return encoder.encode(message)


def reply(agent: Agent, kind: str, *names: str, now: float = NOW, **how: Any) -> Any:
    """Return the reply as (error status, error index, [(name, value)]), or None."""
    answer = agent.answer(ask(agent, kind, *names, **how), now)
    if answer is None:
        return None
    codec = api.PROTOCOL_MODULES[how.get("version", V2C)]
    message, rest = decoder.decode(answer, asn1Spec=codec.Message())
    assert rest == b""
    pdu = codec.apiMessage.get_pdu(message)
    assert int(codec.apiPDU.get_request_id(pdu)) == how.get("request_id", 7)
    varbinds = [(str(name), value) for name, value in codec.apiPDU.get_varbinds(pdu)]
    return int(codec.apiPDU.get_error_status(pdu)), int(codec.apiPDU.get_error_index(pdu)), varbinds


def values(agent: Agent, *names: str, now: float = NOW) -> list[Any]:
    status, _, varbinds = reply(agent, "GetRequest", *names, now=now)
    assert status == 0
    return [value for _, value in varbinds]


def walk(agent: Agent, root: str, version: int = V2C) -> dict[str, Any]:
    """Walk with GETNEXT, and check that names grow and the walk ends."""
    found: dict[str, Any] = {}
    name = root
    while (answer := reply(agent, "GetNextRequest", name, version=version))[0] == 0:
        name, value = answer[2][0]
        if not name.startswith(f"{root}.") or value.__class__.__name__ == "EndOfMibView":
            break
        assert name not in found
        found[name] = value
    return found


def test_system_group(agent: Agent) -> None:
    """The system group has name, location and uptime."""
    name, location, ticks = values(agent, f"{SYSTEM}.5.0", f"{SYSTEM}.6.0", f"{SYSTEM}.3.0")
    assert (str(name), str(location)) == (agent.device.name, agent.device.site)
    assert int(ticks) == int(device_traffic.life(agent.device.salt).uptime(NOW) * 100) & 0xFFFFFFFF


@pytest.mark.parametrize("request_id", [0, 1, 127, 128, 65536, 2**31 - 1, -1, -(2**31)])
def test_request_id_of_any_length_comes_back(agent: Agent, request_id: int) -> None:
    """The reply carries the request's id, with a new plan and with a cached plan."""
    for _ in range(2):
        assert reply(agent, "GetRequest", f"{SYSTEM}.1.0", request_id=request_id)[0] == 0


def test_missing_object_and_missing_instance(agent: Agent) -> None:
    """A get distinguishes an unknown object from an unknown instance."""
    object_, instance, row = values(agent, "1.3.6.1.4.1.1.0", f"{SYSTEM}.1.1", f"{IF_ENTRY}.2.999")
    assert [v.__class__.__name__ for v in (object_, instance, row)] == [
        "NoSuchObject",
        "NoSuchInstance",
        "NoSuchInstance",
    ]


@pytest.mark.parametrize("model", [model.name for model in hardware.SNMP_MODELS])
def test_every_port_has_every_column(model: str) -> None:
    """Walking the interface tables visits each column of each port."""
    agent = Agent(device(model))
    ports = len(hardware.chassis(model, agent.device.variant).ports)
    assert int(values(agent, "1.3.6.1.2.1.2.1.0")[0]) == ports
    assert len(walk(agent, IF_ENTRY)) == 22 * ports
    assert len(walk(agent, IF_X_ENTRY)) == 19 * ports


def test_version_1_cannot_see_counter64(agent: Agent) -> None:
    """A version 1 walk skips 64-bit counters, also constant ones."""
    found = walk(agent, IF_X_ENTRY, version=V1)
    assert {int(name.split(".")[-2]) for name in found} == {*range(1, 6), *range(14, 20)}


def test_version_1_errors_name_the_variable(agent: Agent) -> None:
    """Version 1 reports a missing variable with noSuchName and its position."""
    asked = (f"{SYSTEM}.1.0", "1.3.6.1.4.1.1.0")
    status, index, varbinds = reply(agent, "GetRequest", *asked, version=V1)
    assert (status, index) == (NO_SUCH_NAME, 2)
    assert [name for name, _ in varbinds] == list(asked)
    assert reply(agent, "GetNextRequest", "1.3.6.1.7", version=V1)[:2] == (NO_SUCH_NAME, 1)


def test_writing_is_refused(agent: Agent) -> None:
    """A set is refused."""
    assert reply(agent, "SetRequest", f"{SYSTEM}.5.0")[:2] == (NOT_WRITABLE, 1)
    assert reply(agent, "SetRequest", f"{SYSTEM}.5.0", version=V1)[:2] == (NO_SUCH_NAME, 1)


def test_a_wrong_community_gets_no_reply(agent: Agent) -> None:
    """A wrong community gets no reply, also the demo's on a device with another one."""
    assert reply(agent, "GetRequest", f"{SYSTEM}.1.0", community="guess") is None
    stranger = Agent(device(fault=Fault.WRONG_CREDENTIALS))
    assert reply(stranger, "GetRequest", f"{SYSTEM}.1.0") is None
    assert (
        reply(stranger, "GetRequest", f"{SYSTEM}.1.0", community=fleet.OTHER_COMMUNITY) is not None
    )


def test_bulk_has_non_repeaters_and_rows(agent: Agent) -> None:
    """A bulk reply has the non-repeaters once and the other variables row by row."""
    _, _, varbinds = reply(
        agent, "GetBulkRequest", f"{SYSTEM}.3", f"{IF_ENTRY}.1", f"{IF_ENTRY}.10", bulk=(1, 3)
    )
    assert [name for name, _ in varbinds] == [
        f"{SYSTEM}.3.0",
        *(f"{IF_ENTRY}.{column}.{row}" for row in (1, 2, 3) for column in (1, 10)),
    ]


def test_bulk_ends_at_the_end_of_the_mib(agent: Agent) -> None:
    """A bulk reply ends with one endOfMibView after the last variable."""
    _, _, varbinds = reply(agent, "GetBulkRequest", "1.3.6.1.6.3.10.2.1.3", bulk=(0, 50))
    assert [value.__class__.__name__ for _, value in varbinds][-1] == "EndOfMibView"
    assert [name for name, _ in varbinds][-2:] == ["1.3.6.1.6.3.10.2.1.4.0"] * 2
    assert len(varbinds) == 3


@pytest.mark.parametrize("model", [model.name for model in hardware.SNMP_MODELS])
def test_bulk_is_cut_to_the_message_size(model: str) -> None:
    """A large bulk request gets a message of at most the maximum size."""
    agent = Agent(device(model))
    limit = hardware.MODELS[model].max_message
    sizes = [
        len(
            agent.answer(ask(agent, "GetBulkRequest", f"{root}.{column}", bulk=(0, 10_000)), NOW)
            or b""
        )
        for root in (IF_ENTRY, IF_X_ENTRY)
        for column in (1, 6, 10)
    ]
    assert max(sizes) <= limit
    assert sizes[0] > limit * 0.75


def test_get_of_too_much_is_too_big(agent: Agent) -> None:
    """A get whose reply does not fit is refused with tooBig."""
    names = [f"{SYSTEM}.1.0"] * 40
    assert reply(agent, "GetRequest", *names) == (TOO_BIG, 0, [])
    status, _, varbinds = reply(agent, "GetRequest", *names, version=V1)
    assert (status, len(varbinds)) == (TOO_BIG, 40)


def busy_port(agent: Agent) -> int:
    ports = hardware.chassis(agent.device.model, agent.device.variant).ports
    return max(ports, key=lambda port: port.rates.in_octets).index


def test_counters_grow_at_the_pace_of_the_link(agent: Agent) -> None:
    """Octets grow from second to second, never faster than the link."""
    port = busy_port(agent)
    name, speed = f"{IF_X_ENTRY}.6.{port}", int(values(agent, f"{IF_ENTRY}.5.{port}")[0])
    readings = [int(values(agent, name, now=NOW + second)[0]) for second in range(0, 3600, 60)]
    for before, after in itertools.pairwise(readings):
        assert 0 < (after - before) * 8 < speed * 60


def test_narrow_counters_are_the_wide_ones_wrapped(agent: Agent) -> None:
    """At any instant ifInOctets is ifHCInOctets modulo 2^32, and it does wrap."""
    port = busy_port(agent)
    narrow_before, wraps = 0, 0
    for second in range(0, 3600, 30):
        narrow, wide = values(
            agent, f"{IF_ENTRY}.10.{port}", f"{IF_X_ENTRY}.6.{port}", now=NOW + second
        )
        assert int(narrow) == int(wide) % 2**32
        assert int(wide) > 2**32
        wraps += int(narrow) < narrow_before
        narrow_before = int(narrow)
    assert wraps > 0


def test_wide_counters_wrap_as_well(agent: Agent) -> None:
    """64-bit counters and the uptime wrap to valid values."""
    name = f"{IF_X_ENTRY}.6.{busy_port(agent)}"
    seconds = 2.0**64 / 1e6
    wide = [int(values(agent, name, now=NOW + n * seconds)[0]) for n in range(40)]
    assert any(after < before for before, after in itertools.pairwise(wide))
    assert all(0 <= value < 2**64 for value in wide)
    assert 0 <= int(values(agent, f"{SYSTEM}.3.0", now=NOW + seconds)[0]) < 2**32


def test_a_port_that_is_down_counts_nothing() -> None:
    """The counters of a port without link are constant."""
    agent = Agent(device("access-48"))
    port = next(p for p in hardware.chassis("access-48", agent.device.variant).ports if not p.up)
    now, later = (values(agent, f"{IF_X_ENTRY}.6.{port.index}", now=NOW + s)[0] for s in (0, 500))
    assert int(now) == int(later)


def test_reboot_shows_in_uptime_counters_and_boots() -> None:
    """A reboot resets uptime and counters and increments the number of boots."""
    agent = Agent(device(fault=Fault.REBOOT))
    left = device_traffic.life(agent.device.salt, reboots=True).until_reboot(NOW)
    assert left is not None
    names = (f"{SYSTEM}.3.0", f"{IF_X_ENTRY}.6.{busy_port(agent)}", "1.3.6.1.6.3.10.2.1.2.0")
    before = [int(v) for v in values(agent, *names, now=NOW + left - 1)]
    after = [int(v) for v in values(agent, *names, now=NOW + left + 1)]
    assert after[0] < before[0]
    assert after[1] < before[1]
    assert after[2] == before[2] + 1


def test_devices_differ_although_they_share_plans(agent: Agent) -> None:
    """Two devices of one chassis have their own names, MAC addresses and counters."""
    twin = Agent(
        dataclasses.replace(agent.device, name="sw-ams-9999", salt=agent.device.salt ^ 0xFFFFFF)
    )
    names = (f"{SYSTEM}.5.0", f"{IF_ENTRY}.6.1", f"{IF_X_ENTRY}.6.{busy_port(agent)}")
    assert all(a != b for a, b in zip(values(agent, *names), values(twin, *names), strict=True))


def test_memory_for_plans_is_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with ever new requests cannot fill the memory, and still gets replies."""
    monkeypatch.setattr(agents, "MAX_PLANS", 50)
    monkeypatch.setattr(agent, "_plans", {})
    for number in range(200):
        assert reply(agent, "GetNextRequest", f"1.3.6.1.2.1.1.{number}.0") is not None
    assert len(agent._plans) <= 50


def test_hostile_datagrams_do_not_raise(agent: Agent) -> None:
    """Random bytes and damaged requests raise nothing."""
    dice = random.Random(5)
    good = [
        ask(agent, "GetBulkRequest", f"{IF_ENTRY}.1", bulk=(0, 25)),
        ask(agent, "GetRequest", f"{SYSTEM}.1.0", version=V1),
    ]
    for _ in range(5000):
        data = bytearray(dice.choice([*good, dice.randbytes(dice.randrange(100))]))
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        cut = bytes(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data)
        answer = agent.answer(cut, NOW)
        assert answer is None or len(answer) <= hardware.MODELS[agent.device.model].max_message
