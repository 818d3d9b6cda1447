"""SNMPv3 messages: sealed and opened with a user's keys (RFC 3412, 3414, 3826, 7860). Pure; knows no socket.

Nothing in a message may be believed before `is_authentic` said so.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import NamedTuple

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from poller.collectors.snmp.wire import codec
from poller.collectors.snmp.wire.codec import OCTETS, SEQUENCE, Malformed, Octets, Pdu
from poller.collectors.snmp.wire.usm_keys import Keys

AUTH, PRIV, REPORTABLE = 1, 2, 4
LEVEL = AUTH | PRIV
_LARGEST = 65_507
_SALT = 8

#: The counters an agent reports: why it did not answer. Beneath usmStats, and of SNMP-TARGET-MIB.
UNSUPPORTED_LEVEL, NOT_IN_TIME, UNKNOWN_USER, UNKNOWN_ENGINE, WRONG_DIGEST, DECRYPTION = range(1, 7)
UNAVAILABLE_CONTEXT, UNKNOWN_CONTEXT = 7, 8
REPORTS = {f"1.3.6.1.6.3.15.1.1.{which}.0": which for which in range(1, 7)} | {
    "1.3.6.1.6.3.12.1.4.0": UNAVAILABLE_CONTEXT,
    "1.3.6.1.6.3.12.1.5.0": UNKNOWN_CONTEXT,
}


class Envelope(NamedTuple):
    """Everything of a message but its contents; numbers ending in _at are offsets."""

    message_id: int
    flags: int
    engine_id: bytes
    boots: int
    time: int
    user: bytes
    digest_at: int
    digest: bytes
    salt: bytes
    data_tag: int
    data_at: int
    data_end: int


class Clock(NamedTuple):
    """An engine's own: how often it started, and seconds since."""

    boots: int = 0
    time: int = 0


def parse(data: Octets, length: int) -> Envelope:
    """The envelope of a message of exactly `length` octets. Raises Malformed."""
    at, end = codec.expect(data, 0, length, SEQUENCE)
    version, at = codec.read_integer(data, at, end)
    if version != 3 or end != length:
        raise Malformed("not one whole message of version 3")
    start, at = codec.expect(data, at, end, SEQUENCE)
    message_id, start = codec.read_integer(data, start, at)
    _, start = codec.read_integer(data, start, at)
    flags, start = codec.read_octets(data, start, at)
    model, _ = codec.read_integer(data, start, at)
    if len(flags) != 1 or model != 3:
        raise Malformed("flags or a security model that nobody knows")
    start, at = codec.expect(data, at, end, OCTETS)
    start, stop = codec.expect(data, start, at, SEQUENCE)
    engine_id, start = codec.read_octets(data, start, stop)
    boots, start = codec.read_integer(data, start, stop)
    time, start = codec.read_integer(data, start, stop)
    user, start = codec.read_octets(data, start, stop)
    digest, start = codec.read_octets(data, start, stop)
    salt, _ = codec.read_octets(data, start, stop)
    tag, data_at, data_end = codec.header(data, at, end)
    digest_at = start - len(digest)
    return Envelope(
        message_id,
        flags[0],
        engine_id,
        boots,
        time,
        user,
        digest_at,
        digest,
        salt,
        tag,
        data_at,
        data_end,
    )


def is_authentic(data: Octets, length: int, envelope: Envelope, keys: Keys) -> bool:
    """Was it made with these keys, and not touched since?"""
    if not envelope.flags & AUTH or not keys.hash or len(envelope.digest) != keys.digest_size:
        return False
    return is_signed(data, length, envelope.digest_at, keys)


def is_signed(data: Octets, length: int, at: int, keys: Keys) -> bool:
    """Is what stands at `at` the digest of the message around it?"""
    size = keys.digest_size
    whole = bytearray(data[:length])
    digest = whole[at : at + size]
    whole[at : at + size] = bytes(size)
    return hmac.compare_digest(hmac.digest(keys.auth, whole, keys.hash)[:size], digest)


class Usual(NamedTuple):
    """What every encrypted answer of one agent to one user has in common."""

    engine_id: bytes
    user: bytes  # and the head of the digest
    digest_size: int


def usual(engine_id: bytes, user: bytes, keys: Keys) -> Usual:
    head = codec.element(OCTETS, user) + bytes((OCTETS, keys.digest_size))
    return Usual(codec.element(OCTETS, engine_id), head, keys.digest_size)


def usual_digest(data: Octets, expected: Usual) -> int:
    """Where the digest of a usual answer stands; 0 if it is not one, and may still be all right.

    A tenth of the cost of `parse`: it is done for every answer.
    """
    head = _HEAD.match(data)
    at = head.end() if head else 0
    if not head or not data.startswith(expected.engine_id, at):
        return 0
    clock = _CLOCK.match(data, at + len(expected.engine_id))
    at = clock.end() if clock else 0
    if not clock or not data.startswith(expected.user, at):
        return 0
    at += len(expected.user)
    after = at + expected.digest_size
    return at if data[after : after + 2] == _SALT_HEAD and data[after + 2 + _SALT] == OCTETS else 0


_SIZE, _NUMBER = (
    rb"(?:[\x00-\x7f]|\x81.|\x82..)",
    rb"\x02(?:\x01.|\x02..|\x03...|\x04....|\x05.....)",
)
_CLOCK = re.compile(_NUMBER * 2, re.DOTALL)
_HEAD = re.compile(
    rb"\x30" + _SIZE + rb"\x02\x01\x03\x30" + _SIZE + _NUMBER * 2 + rb"\x04\x01[\x03\x07]\x02\x01\x03"
    rb"\x04" + _SIZE + rb"\x30" + _SIZE,
    re.DOTALL,
)  # fmt: skip
_SALT_HEAD = bytes((OCTETS, _SALT))


def open_pdu(data: Octets, envelope: Envelope, keys: Keys) -> Pdu:
    """The PDU within, decrypted if need be. Raises Malformed."""
    return codec.read_pdu(*scoped(data, envelope, keys))


def scoped(data: Octets, envelope: Envelope, keys: Keys) -> tuple[bytes, int, int]:
    """Octets, and where in them the PDU begins and its surroundings end."""
    plain = bytes(data[envelope.data_at : envelope.data_end])
    if envelope.data_tag == OCTETS:
        plain = _decrypt(plain, envelope, keys)
        at, end = codec.expect(plain, 0, len(plain), SEQUENCE)  # padding may follow
    elif envelope.data_tag == SEQUENCE:
        at, end = 0, len(plain)
    else:
        raise Malformed("contents that are neither plain nor encrypted")
    _, at = codec.read_octets(plain, at, end)  # whose context
    _, at = codec.read_octets(plain, at, end)  # and which
    return plain, at, end


def reported(pdu: Pdu) -> int:
    """Which of the counters above a report is about; 0 for any other."""
    return REPORTS.get(pdu.rows[0][0], 0) if pdu.rows else 0


def seal(
    pdu: bytes,
    user: bytes,
    engine_id: bytes,
    clock: Clock,
    keys: Keys,
    message_id: int,
    flags: int,
    context: bytes = b"",
) -> bytes:
    """A message with this PDU, encrypted and signed as `flags` say."""
    inner = codec.element(OCTETS, engine_id) + codec.element(OCTETS, context) + pdu
    contents, salt = codec.element(SEQUENCE, inner), b""
    if flags & PRIV:
        salt = _new_salt(keys, clock)
        contents = codec.element(OCTETS, _crypt(contents, salt, clock, keys, encrypt=True))
    digest = bytes(keys.digest_size if flags & AUTH else 0)
    octets = (codec.element(OCTETS, part) for part in (user, digest, salt))
    model = (
        codec.element(OCTETS, engine_id)
        + codec.integer(clock.boots)
        + codec.integer(clock.time)
        + b"".join(octets)
    )
    head = (
        codec.integer(message_id)
        + codec.integer(_LARGEST)
        + codec.element(OCTETS, bytes((flags,)))
        + codec.integer(3)
    )
    security = codec.element(OCTETS, codec.element(SEQUENCE, model))
    whole = codec.element(
        SEQUENCE, codec.integer(3) + codec.element(SEQUENCE, head) + security + contents
    )
    return (
        _sign(whole, len(contents) + len(codec.element(OCTETS, salt)), keys)
        if flags & AUTH
        else whole
    )


def _sign(whole: bytes, after: int, keys: Keys) -> bytes:
    """`after` octets follow the empty digest."""
    at = len(whole) - after - keys.digest_size
    digest = hmac.digest(keys.auth, whole, keys.hash)[: keys.digest_size]
    return whole[:at] + digest + whole[at + keys.digest_size :]


def _new_salt(keys: Keys, clock: Clock) -> bytes:
    if keys.cipher == "DES":
        return (clock.boots & 0xFFFFFFFF).to_bytes(4, "big") + secrets.token_bytes(4)
    return secrets.token_bytes(_SALT)


def _decrypt(data: bytes, envelope: Envelope, keys: Keys) -> bytes:
    if not keys.cipher or len(envelope.salt) != _SALT or (keys.cipher == "DES" and len(data) % 8):
        raise Malformed("encrypted, but not for us")
    return _crypt(data, envelope.salt, Clock(envelope.boots, envelope.time), keys, encrypt=False)


def _crypt(data: bytes, salt: bytes, clock: Clock, keys: Keys, *, encrypt: bool) -> bytes:
    cipher: Cipher[modes.CBC] | Cipher[CFB]
    if keys.cipher == "DES":
        vector = bytes(a ^ b for a, b in zip(salt, keys.priv[8:16], strict=True))
        cipher = Cipher(
            TripleDES(keys.priv[:8] * 3), modes.CBC(vector)
        )  # three times the same is once
        data += bytes(-len(data) % 8)
    else:
        times = (number & 0xFFFFFFFF for number in clock)
        vector = b"".join(number.to_bytes(4, "big") for number in times) + salt
        cipher = Cipher(algorithms.AES(keys.priv), CFB(vector))
    worker = cipher.encryptor() if encrypt else cipher.decryptor()
    return worker.update(data) + worker.finalize()
