"""SNMPv3 traps that snmptrap sent are opened with the right passwords only."""

from __future__ import annotations

import pytest

from poller.collectors.credentials import Community, SnmpV3
from poller.collectors.snmp.wire import usm
from poller.traps import v3_traps
from poller.traps.engine_clocks import EngineClocks
from poller.traps.trap_message import Malformed, Notification, Refused, Replayed

#: snmptrap -v 3 -e 0x80001f88aa -u mon -a SHA -A authpass123 ...
#:   1.3.6.1.6.3.1.1.5.3 1.3.6.1.2.1.2.2.1.1.3 i 3
ENCRYPTED = bytes.fromhex(
    "3081a9020103301102045dbe0de1020300ffe3040103020103042e302c040580001f88aa020101020350d86604036d6f6e040c35b4b6cb7e"
    "d672a5f6c5cfff04083b1dd0da3e4218f904614c7fbd0d2e0585d1676f6b16b8252b0657622a9c6f7feb26a04e7edb8e978d6463f19559b17f"
    "bd0cf5273d1223d453646e0c93e7398cb7a8a2ed572e94019a6d30f32385b5bbb02a8bf9b94ec356c77cacb9af48a2a2736d24b3ad6232453e"
    "2c4b"
)
SIGNED = bytes.fromhex(
    "30819f020103301102043c829bf1020300ffe304010102010304263024040580001f88aa020101020350d86804036d6f6e040cc6440ee1ffda"
    "92e0564cf5aa0400305f041180001f8880599dab47711dfb6a000000000400a74802046a4068cd020100020100303a300e06082b0601020101"
    "0300430230393017060a2b06010603010104010006092b0601060301010503300f060a2b060102010202010103020103"
)
MON = SnmpV3.from_fields(
    {"username": "mon", "auth_password": "authpass123", "priv_password": "privpass123"}
)


def read(
    datagram: bytes,
    credential: SnmpV3 | Community = MON,
    clocks: EngineClocks | None = None,
    now_s: float = 0,
) -> Notification:
    return v3_traps.parse_v3_trap(datagram, clocks or EngineClocks()).open(credential, now_s)


def changed(**fields: str | None) -> SnmpV3:
    plain = {"username": "mon", "auth_password": "authpass123", "priv_password": "privpass123"}
    return SnmpV3.from_fields(
        {name: text for name, text in {**plain, **fields}.items() if text is not None}
    )


@pytest.mark.parametrize("datagram", [ENCRYPTED, SIGNED], ids=["authPriv", "authNoPriv"])
def test_a_trap_of_net_snmp_is_opened(datagram: bytes) -> None:
    """A signature is enough, even if the credential has a privacy password."""
    assert read(datagram) == Notification("linkDown", 3)


@pytest.mark.parametrize(
    "credential",
    [
        changed(username="root"),
        changed(auth_password="authpass124"),
        changed(priv_password="privpass124"),
        changed(priv_password=None),
        changed(auth_protocol="MD5"),
        changed(auth_protocol="SHA512"),
        changed(priv_protocol="DES"),
        Community.from_text("mon"),
    ],
    ids=["user", "password", "privacy", "no privacy", "MD5", "SHA512", "DES", "community"],
)
def test_a_wrong_credential_does_not_open_a_trap(
    credential: SnmpV3 | Community,
) -> None:
    """A wrong privacy password yields no PDU."""
    with pytest.raises((Refused, Malformed)):
        read(ENCRYPTED, credential)


def test_an_unsigned_trap_of_a_user_with_a_password_is_refused() -> None:
    """The trap without its authentication flag is refused."""
    unsigned = bytearray(SIGNED)
    unsigned[unsigned.index(b"\x04\x01\x01\x02\x01\x03") + 2] = 0
    with pytest.raises(Refused):
        read(bytes(unsigned))


def test_no_bit_can_be_changed() -> None:
    """The signature covers every bit of both traps."""
    for datagram in (ENCRYPTED, SIGNED):
        for place in range(len(datagram) * 8):
            flipped = bytearray(datagram)
            flipped[place // 8] ^= 1 << place % 8
            with pytest.raises((Refused, Malformed)):
                read(bytes(flipped))
        for length in range(len(datagram)):
            with pytest.raises((Refused, Malformed)):
                read(datagram[:length])


def test_an_old_trap_is_refused() -> None:
    """A recorded trap that is sent after the window is a replay."""
    clocks = EngineClocks()
    assert read(ENCRYPTED, clocks=clocks, now_s=10.0).name == "linkDown"
    assert read(ENCRYPTED, clocks=clocks, now_s=159.0).name == "linkDown"
    with pytest.raises(Replayed):
        read(ENCRYPTED, clocks=clocks, now_s=161.0)


def test_no_secret_is_printed() -> None:
    """An opened trap holds neither passwords nor keys."""
    trap = v3_traps.parse_v3_trap(ENCRYPTED, EngineClocks())
    trap.open(MON, 0.0)
    keys = usm.passwords(MON).localized(trap.envelope.engine_id)
    for secret in (b"authpass123", b"privpass123", keys.auth, keys.priv):
        assert repr(secret)[2:-1] not in repr(trap)
