"""SNMPv3 messages: keys as in the RFC, and no changed message is authentic."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.wire import codec, v3_message
from poller.collectors.snmp.wire.codec import Malformed
from poller.collectors.snmp.wire.usm import UsmState
from poller.collectors.snmp.wire.usm_keys import Keys, Passwords, master_key
from poller.collectors.snmp.wire.v3_message import Clock

ENGINE = bytes.fromhex("000000000000000000000002")
AUTHS = ("MD5", "SHA", "SHA224", "SHA256", "SHA384", "SHA512")
PRIVS = ("DES", "AES", "AES192", "AES192C", "AES256", "AES256C")
#: RFC 3414, A.3: the password "maplesyrup".
VECTORS = [
    ("MD5", "9faf3283884e92834ebc9847d8edd963", "526f5eed9fcce26f8964c2930787d82b"),
    ("SHA", "9fb5cc0381497b3793528939ff788d5d79145211", "6695febc9288e36282235fc7151f128497b38f3f"),
]
ANSWER = codec.element(
    codec.RESPONSE,
    codec.integer(7) + codec.integer(0) * 2
    + codec.element(0x30, codec.element(0x30, b"\x06\x03\x2b\x06\x01" + codec.integer(42))),
)  # fmt: skip


@pytest.mark.parametrize(("protocol", "whole", "local"), VECTORS)
def test_keys_are_those_of_the_rfc(protocol: str, whole: str, local: str) -> None:
    assert master_key(protocol, b"maplesyrup").hex() == whole
    assert Passwords(protocol, b"maplesyrup").localized(ENGINE).auth.hex() == local


def keys(auth: str = "SHA", priv: str = "AES") -> Keys:
    return Passwords(auth, b"maplesyrup", priv, b"another-one").localized(ENGINE)


def sealed(made: Keys, flags: int = v3_message.LEVEL) -> bytes:
    return v3_message.seal(ANSWER, b"user", ENGINE, Clock(3, 1000), made, 99, flags)


@pytest.mark.parametrize(("auth", "priv"), list(product(AUTHS, PRIVS)))
def test_a_sealed_message_is_opened(auth: str, priv: str) -> None:
    """Every combination of protocols; the contents do not appear in the message."""
    made = keys(auth, priv)
    message = sealed(made)
    envelope = v3_message.parse(message, len(message))
    assert (envelope.message_id, envelope.engine_id, envelope.user) == (99, ENGINE, b"user")
    assert v3_message.is_authentic(message, len(message), envelope, made)
    assert v3_message.open_pdu(message, envelope, made).rows == [("1.3.6.1", 42)]
    assert b"\x2b\x06\x01\x02\x01\x2a" not in message


@pytest.mark.parametrize("auth", AUTHS)
@pytest.mark.parametrize(
    "clock", [Clock(0, 0), Clock(1, 127), Clock(300, 86_400), Clock(2**31 - 1, 2**31 - 1)]
)
def test_the_digest_of_a_usual_response_is_found(auth: str, clock: Clock) -> None:
    """A report, and a response to another user, have another form: the full parser reads them."""
    made = keys(auth)
    prefix = v3_message.response_prefix(ENGINE, b"user", made)
    message = v3_message.seal(ANSWER, b"user", ENGINE, clock, made, 2**31 - 1, v3_message.LEVEL)
    at = v3_message.find_digest(message, prefix)
    assert at == v3_message.parse(message, len(message)).digest_at
    assert v3_message.is_signed(message, len(message), at, made)
    assert not v3_message.find_digest(
        v3_message.seal(ANSWER, b"user", ENGINE, clock, made, 99, v3_message.AUTH), prefix
    )
    assert not v3_message.find_digest(
        v3_message.seal(ANSWER, b"other", ENGINE, clock, made, 99, v3_message.LEVEL), prefix
    )
    assert not v3_message.find_digest(message[: at + 3] + bytes(100), prefix)


def test_the_two_key_extensions_differ() -> None:
    assert keys("SHA", "AES256").priv != keys("SHA", "AES256C").priv
    assert keys("SHA", "AES256").priv[:20] == keys("SHA", "AES256C").priv[:20]


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_changed_message_is_not_authentic(at: int, bit: int) -> None:
    """A single changed bit is enough."""
    made = keys()
    message = bytearray(sealed(made))
    message[at % len(message)] ^= 1 << bit
    try:
        envelope = v3_message.parse(message, len(message))
    except Malformed:
        return
    assert not v3_message.is_authentic(message, len(message), envelope, made)


def test_the_keys_of_another_agent_do_not_fit() -> None:
    message = sealed(keys())
    other = Passwords("SHA", b"maplesyrup", "AES", b"another-one").localized(b"\x80other-engine")
    assert not v3_message.is_authentic(
        message, len(message), v3_message.parse(message, len(message)), other
    )


def test_a_message_without_a_digest_is_not_authentic() -> None:
    message = sealed(keys(), flags=0)
    assert not v3_message.is_authentic(
        message, len(message), v3_message.parse(message, len(message)), keys()
    )


@given(st.binary(max_size=200))
def test_random_octets_are_read_or_malformed(data: bytes) -> None:
    try:
        envelope = v3_message.parse(data, len(data))
        v3_message.is_authentic(data, len(data), envelope, keys())
        v3_message.open_pdu(data, envelope, keys())
    except Malformed:
        pass


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_sealed_message_with_changed_octets_is_read_or_malformed(
    changes: list[tuple[int, int]],
) -> None:
    spoiled = bytearray(sealed(keys("MD5", "DES")))
    for at, octet in changes:
        spoiled[at % len(spoiled)] = octet
    try:
        envelope = v3_message.parse(spoiled, len(spoiled))
        v3_message.open_pdu(spoiled, envelope, keys("MD5", "DES"))
    except Malformed:
        pass


def test_the_agents_clock_advances_with_ours() -> None:
    """No request is needed to know the time of an agent."""
    state = UsmState("user", Passwords())
    state.set_clock(Clock(3, 1000), now=50.0)
    assert state.clock_at(75.9) == Clock(3, 1025)


def test_no_secret_is_printed() -> None:
    secret = Passwords("SHA", b"s3cret-auth", "AES", b"s3cret-priv")
    state = UsmState("user", secret)
    state.set_engine(ENGINE)
    printed = " ".join(
        f"{item!r} {item}" for item in (secret, state, state.keys, dataclasses.fields(state))
    )
    assert "s3cret" not in printed
    assert state.keys.auth.hex() not in printed
