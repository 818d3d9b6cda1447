"""Notifications are read; every other datagram is refused."""

from __future__ import annotations

import random

import pytest
from pyasn1.codec.ber import encoder
from pysnmp.proto import api

from poller.collectors.credentials import Community, SnmpV3
from poller.traps import trap_message, v3_traps
from poller.traps.engine_clocks import EngineClocks
from poller.traps.trap_message import Malformed, Notification, Refused

V1, V2C = api.PROTOCOL_MODULES[api.SNMP_VERSION_1], api.PROTOCOL_MODULES[api.SNMP_VERSION_2C]
PUBLIC = Community.from_text("public")
IF_INDEX = (1, 3, 6, 1, 2, 1, 2, 2, 1, 1, 3)


def v2c(trap: tuple[int, ...], community: str = "public", inform: bool = False) -> bytes:
    """A trap as an agent sends it, with an interface index."""
    pdu = V2C.InformRequestPDU() if inform else V2C.SNMPv2TrapPDU()
    V2C.apiTrapPDU.set_defaults(pdu)
    variables = [
        ((1, 3, 6, 1, 2, 1, 1, 3, 0), V2C.TimeTicks(42)),
        ((1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0), V2C.ObjectIdentifier(trap)),
        (IF_INDEX, V2C.Integer(3)),
    ]
    V2C.apiTrapPDU.set_varbinds(pdu, variables)
    return _wrapped(V2C, pdu, community)


def v1(generic: int, specific: int = 0) -> bytes:
    pdu = V1.TrapPDU()
    V1.apiTrapPDU.set_defaults(pdu)
    V1.apiTrapPDU.set_enterprise(pdu, (1, 3, 6, 1, 4, 1, 9999))
    V1.apiTrapPDU.set_generic_trap(pdu, generic)
    V1.apiTrapPDU.set_specific_trap(pdu, specific)
    return _wrapped(V1, pdu, "public")


def _wrapped(module: object, pdu: object, community: str) -> bytes:
    made = module.Message()  # type: ignore[attr-defined]
    module.apiMessage.set_defaults(made)  # type: ignore[attr-defined]
    module.apiMessage.set_community(made, community)  # type: ignore[attr-defined]
    module.apiMessage.set_pdu(made, pdu)  # type: ignore[attr-defined]
    return bytes(encoder.encode(made))


def read(datagram: bytes, credential: Community | SnmpV3 = PUBLIC) -> Notification:
    version = trap_message.version_of(datagram)
    if version == 3:
        return v3_traps.parse_v3_trap(datagram, EngineClocks()).open(credential, 0.0)
    return trap_message.parse_community_trap(datagram, version).open(credential, 0.0)


@pytest.mark.parametrize(
    ("trap", "name"),
    [
        ((1, 3, 6, 1, 6, 3, 1, 1, 5, 1), "coldStart"),
        ((1, 3, 6, 1, 6, 3, 1, 1, 5, 2), "warmStart"),
        ((1, 3, 6, 1, 6, 3, 1, 1, 5, 3), "linkDown"),
        ((1, 3, 6, 1, 6, 3, 1, 1, 5, 4), "linkUp"),
        ((1, 3, 6, 1, 4, 1, 9, 9, 41, 2, 0, 1), "1.3.6.1.4.1.9.9.41.2.0.1"),
        ((1, 3, 6, 1, 6, 3, 1, 1, 5, 99), "1.3.6.1.6.3.1.1.5.99"),
    ],
)
def test_a_v2c_trap_gives_its_name_and_interface(trap: tuple[int, ...], name: str) -> None:
    """Standard traps have names, other traps their OID."""
    assert read(v2c(trap)) == Notification(name, 3)


@pytest.mark.parametrize(
    ("generic", "specific", "name"),
    [(0, 0, "coldStart"), (2, 0, "linkDown"), (3, 7, "linkUp"), (6, 17, "1.3.6.1.4.1.9999.0.17")],
)
def test_a_v1_trap_gets_its_v2c_name(generic: int, specific: int, name: str) -> None:
    """Enterprise traps become the OID that v2c would give them."""
    assert read(v1(generic, specific)).name == name


def test_only_an_inform_is_answered_and_with_its_own_content() -> None:
    """The acknowledgement keeps the request id."""
    asked = v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3), inform=True)
    answer = trap_message.parse_community_trap(asked, 1).acknowledgement()
    assert answer is not None
    assert answer == asked.replace(b"\xa6", b"\xa2", 1)
    assert (
        trap_message.parse_community_trap(v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3)), 1).acknowledgement()
        is None
    )


@pytest.mark.parametrize("community", ["Public", "", "publi", "public2"])
def test_another_community_is_refused(community: str) -> None:
    """Similar communities are refused as well."""
    with pytest.raises(Refused):
        read(v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3), community))


def test_a_credential_of_another_version_opens_nothing() -> None:
    """A v3 user has no community."""
    with pytest.raises(Refused):
        read(v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3)), SnmpV3(username="public"))


def test_a_request_is_malformed() -> None:
    """The listener is no agent, so it answers no GET."""
    pdu = V2C.GetRequestPDU()
    V2C.apiPDU.set_defaults(pdu)
    with pytest.raises(Malformed):
        read(_wrapped(V2C, pdu, "public"))


@pytest.mark.parametrize(
    "lie",
    [
        v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3)).replace(
            b"\x04\x06public", b"\x04\x89" + b"\x7f" * 9 + b"public"
        ),
        b"\x30\x80\x02\x01\x01" + b"\x30\x80" * 30_000,
        b"\x30\x03\x02\x01\x01",
        b"\x30\x82",
        b"",
    ],
    ids=["huge", "deep", "short", "cut", "nothing"],
)
def test_false_lengths_are_malformed(lie: bytes) -> None:
    """Lengths beyond memory, nesting beyond the stack, and missing octets."""
    with pytest.raises(Malformed):
        read(lie)


def test_changed_datagrams_are_read_or_refused() -> None:
    """No other exception leaves the decoder for cut, flipped and random octets."""
    randomness = random.Random(7)
    samples = [v2c((1, 3, 6, 1, 6, 3, 1, 1, 5, 3)), v1(2), v1(6, 1)]
    opened = refused = 0
    for _ in range(3000):
        content = bytearray(randomness.choice(samples))
        for _ in range(randomness.randint(1, 4)):
            content[randomness.randrange(len(content))] = randomness.randrange(256)
        if randomness.random() < 0.3:
            del content[randomness.randrange(len(content)) :]
        try:
            read(bytes(content))
            opened += 1
        except (Malformed, Refused):
            refused += 1
    assert opened + refused == 3000
    assert refused > 1000
