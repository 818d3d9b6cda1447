"""SNMPv3 messages, sealed and opened with a user's keys (RFC 3412, 3414, 3826, 7860).

Pure: no socket, no clock. Nothing in a message may be used before `is_authentic` has returned True.
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
_MAX_MESSAGE = 65_507
_SALT_SIZE = 8

#: Reports: counters that agents send instead of a response (usmStats, SNMP-TARGET-MIB).
UNSUPPORTED_LEVEL, NOT_IN_TIME, UNKNOWN_USER, UNKNOWN_ENGINE, WRONG_DIGEST, DECRYPTION = range(1, 7)
UNAVAILABLE_CONTEXT, UNKNOWN_CONTEXT = 7, 8
REPORTS = {f"1.3.6.1.6.3.15.1.1.{report}.0": report for report in range(1, 7)} | {
    "1.3.6.1.6.3.12.1.4.0": UNAVAILABLE_CONTEXT,
    "1.3.6.1.6.3.12.1.5.0": UNKNOWN_CONTEXT,
}


class Envelope(NamedTuple):
    """All fields of a message except its contents. Fields that end in _at or _end are offsets."""

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
    """Clock of an SNMP engine: its number of starts, and seconds since the last one."""

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
        raise Malformed("unknown flags or security model")

    start, at = codec.expect(data, at, end, OCTETS)
    start, stop = codec.expect(data, start, at, SEQUENCE)
    engine_id, start = codec.read_octets(data, start, stop)
    boots, start = codec.read_integer(data, start, stop)
    time, start = codec.read_integer(data, start, stop)
    user, start = codec.read_octets(data, start, stop)
    digest, start = codec.read_octets(data, start, stop)
    salt, _ = codec.read_octets(data, start, stop)

    tag, data_at, data_end = codec.header(data, at, end)
    return Envelope(
        message_id=message_id,
        flags=flags[0],
        engine_id=engine_id,
        boots=boots,
        time=time,
        user=user,
        digest_at=start - len(digest),
        digest=digest,
        salt=salt,
        data_tag=tag,
        data_at=data_at,
        data_end=data_end,
    )


def is_authentic(data: Octets, length: int, envelope: Envelope, keys: Keys) -> bool:
    """Whether the message carries a valid digest of these keys."""
    if not envelope.flags & AUTH or not keys.hash:
        return False
    if len(envelope.digest) != keys.digest_size:
        return False
    return is_signed(data, length, envelope.digest_at, keys)


def is_signed(data: Octets, length: int, at: int, keys: Keys) -> bool:
    """Whether the octets at `at` are the digest of the message around them."""
    size = keys.digest_size
    whole = bytearray(data[:length])
    digest = whole[at : at + size]
    whole[at : at + size] = bytes(size)
    expected = hmac.digest(keys.auth, whole, keys.hash)[:size]
    return hmac.compare_digest(expected, digest)


class ResponsePrefix(NamedTuple):
    """Octets that all encrypted responses of one agent to one user share."""

    engine_id: bytes
    user: bytes  # with the head of the digest element
    digest_size: int


def response_prefix(engine_id: bytes, user: bytes, keys: Keys) -> ResponsePrefix:
    """The prefix of all responses to this user, for `find_digest`."""
    digest_head = bytes((OCTETS, keys.digest_size))
    return ResponsePrefix(
        engine_id=codec.element(OCTETS, engine_id),
        user=codec.element(OCTETS, user) + digest_head,
        digest_size=keys.digest_size,
    )


def find_digest(data: Octets, expected: ResponsePrefix) -> int:
    """Offset of the digest in an encrypted response of the usual form; 0 for any other form.

    A message of another form may still be valid: `parse` decides. This check runs for every
    response and costs a tenth of `parse`.
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
    salt_at = at + expected.digest_size
    if data[salt_at : salt_at + 2] != _SALT_HEAD or data[salt_at + 2 + _SALT_SIZE] != OCTETS:
        return 0
    return at


_SIZE = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
_NUMBER = rb"\x02(?:\x01.|\x02..|\x03...|\x04....|\x05.....)"
_CLOCK = re.compile(_NUMBER * 2, re.DOTALL)
_HEAD = re.compile(
    rb"\x30" + _SIZE + rb"\x02\x01\x03"  # the message, its version
    + rb"\x30" + _SIZE + _NUMBER * 2 + rb"\x04\x01[\x03\x07]\x02\x01\x03"  # its header
    + rb"\x04" + _SIZE + rb"\x30" + _SIZE,  # its security parameters
    re.DOTALL,
)  # fmt: skip
_SALT_HEAD = bytes((OCTETS, _SALT_SIZE))


def open_pdu(data: Octets, envelope: Envelope, keys: Keys) -> Pdu:
    """The PDU inside a message, decrypted where necessary. Raises Malformed."""
    return codec.read_pdu(*scoped(data, envelope, keys))


def scoped(data: Octets, envelope: Envelope, keys: Keys) -> tuple[bytes, int, int]:
    """The scoped PDU in the clear, with the offset of its PDU and of its end. Raises Malformed."""
    plain = bytes(data[envelope.data_at : envelope.data_end])
    if envelope.data_tag == OCTETS:
        plain = _decrypt(plain, envelope, keys)
        at, end = codec.expect(plain, 0, len(plain), SEQUENCE)  # padding may follow
    elif envelope.data_tag == SEQUENCE:
        at, end = 0, len(plain)
    else:
        raise Malformed("contents that are neither plain nor encrypted")
    _, at = codec.read_octets(plain, at, end)  # context engine id
    _, at = codec.read_octets(plain, at, end)  # context name
    return plain, at, end


def report_of(pdu: Pdu) -> int:
    """The value of REPORTS that a report is about; 0 for any other counter."""
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
    scope = codec.element(OCTETS, engine_id) + codec.element(OCTETS, context)
    contents = codec.element(SEQUENCE, scope + pdu)
    salt = b""
    if flags & PRIV:
        salt = _new_salt(keys, clock)
        encrypted = _crypt(contents, salt, clock, keys, encrypt=True)
        contents = codec.element(OCTETS, encrypted)

    empty_digest = bytes(keys.digest_size if flags & AUTH else 0)
    salt_element = codec.element(OCTETS, salt)
    parameters = (
        codec.element(OCTETS, engine_id)
        + codec.integer(clock.boots)
        + codec.integer(clock.time)
        + codec.element(OCTETS, user)
        + codec.element(OCTETS, empty_digest)
        + salt_element
    )
    security = codec.element(OCTETS, codec.element(SEQUENCE, parameters))
    body = codec.integer(3) + _global_data(message_id, flags) + security + contents
    whole = codec.element(SEQUENCE, body)
    if not flags & AUTH:
        return whole
    return _sign(whole, len(salt_element) + len(contents), keys)


def _global_data(message_id: int, flags: int) -> bytes:
    """msgGlobalData (RFC 3412, 6): the security model is USM, number 3."""
    body = (
        codec.integer(message_id)
        + codec.integer(_MAX_MESSAGE)
        + codec.element(OCTETS, bytes((flags,)))
        + codec.integer(3)
    )
    return codec.element(SEQUENCE, body)


def _sign(whole: bytes, after: int, keys: Keys) -> bytes:
    """Fill in the digest of a message; `after` octets follow the empty one."""
    size = keys.digest_size
    end = len(whole) - after
    digest = hmac.digest(keys.auth, whole, keys.hash)[:size]
    return whole[: end - size] + digest + whole[end:]


def _new_salt(keys: Keys, clock: Clock) -> bytes:
    """Privacy parameters of a new message: random, for DES behind the agent's boots."""
    if keys.cipher == "DES":
        boots = clock.boots & 0xFFFFFFFF
        return boots.to_bytes(4, "big") + secrets.token_bytes(4)
    return secrets.token_bytes(_SALT_SIZE)


def _decrypt(data: bytes, envelope: Envelope, keys: Keys) -> bytes:
    """The contents of an encrypted message. Raises Malformed."""
    if (
        not keys.cipher
        or len(envelope.salt) != _SALT_SIZE
        or (keys.cipher == "DES" and len(data) % 8)
    ):
        raise Malformed("encrypted, but not for us")
    clock = Clock(envelope.boots, envelope.time)
    return _crypt(data, envelope.salt, clock, keys, encrypt=False)


def _crypt(data: bytes, salt: bytes, clock: Clock, keys: Keys, *, encrypt: bool) -> bytes:
    """Encrypt or decrypt with DES in CBC mode (RFC 3414, 8) or AES in CFB mode (RFC 3826)."""
    cipher: Cipher[modes.CBC] | Cipher[CFB]
    if keys.cipher == "DES":
        vector = bytes(a ^ b for a, b in zip(salt, keys.priv[8:16], strict=True))
        single_des = TripleDES(keys.priv[:8] * 3)  # three equal keys are plain DES
        cipher = Cipher(single_des, modes.CBC(vector))
        data += bytes(-len(data) % 8)
    else:
        boots = (clock.boots & 0xFFFFFFFF).to_bytes(4, "big")
        time = (clock.time & 0xFFFFFFFF).to_bytes(4, "big")
        cipher = Cipher(algorithms.AES(keys.priv), CFB(boots + time + salt))
    context = cipher.encryptor() if encrypt else cipher.decryptor()
    return context.update(data) + context.finalize()
