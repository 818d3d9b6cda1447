"""The agent's side of SNMPv3: checks user, authenticity and time, and reports failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from poller.collectors.snmp.wire import codec, v3_message
from poller.collectors.snmp.wire.usm_keys import Keys, Passwords
from poller.collectors.snmp.wire.v3_message import Clock, Envelope
from poller.sim.snmp import ber

WINDOW_S = 150
_USM_STATS = (1, 3, 6, 1, 6, 3, 15, 1, 1)


class SecuredRequest(NamedTuple):
    """An authentic request, and the envelope and keys for its reply."""

    pdu: bytes
    envelope: Envelope
    keys: Keys


class Authority:
    """One SNMPv3 engine. Counts its reports by kind, and the discoveries of its engine id."""

    def __init__(
        self, engine_id: bytes, users: Mapping[bytes, Passwords], started: float, boots: int = 1
    ) -> None:
        self._engine_id = engine_id
        self._users = users
        self._keys: dict[bytes, Keys] = {}
        self._started = started
        self._boots = boots
        self.reports: Counter[int] = Counter()
        self.discoveries = 0

    def reboot(self, now: float) -> None:
        """Restart the clock of the engine, so that the clocks of its clients are wrong."""
        self._boots += 1
        self._started = now

    def clock(self, now: float) -> Clock:
        return Clock(self._boots, int(now - self._started))

    def receive(self, data: bytes, now: float) -> SecuredRequest | bytes | None:
        """Return the request in a datagram, or a report to send, or None for no reply."""
        try:
            envelope = v3_message.parse(data, len(data))
            report = self._failed_check(data, envelope, now)
            if report:
                return self._report(report, envelope, now)
            keys = self._keys_of(envelope.user)
            try:
                plain, at, end = v3_message.scoped(data, envelope, keys)
            except codec.Malformed:
                return self._report(v3_message.DECRYPTION, envelope, now)
        except codec.Malformed:
            return None
        return SecuredRequest(plain[at:end], envelope, keys)

    def seal(self, pdu: bytes, request: SecuredRequest, now: float) -> bytes:
        envelope = request.envelope
        flags = envelope.flags & v3_message.LEVEL
        return v3_message.seal(
            pdu,
            envelope.user,
            self._engine_id,
            self.clock(now),
            request.keys,
            envelope.message_id,
            flags,
        )

    def _failed_check(self, data: bytes, envelope: Envelope, now: float) -> int:
        """Return the failed check, in the order of RFC 3414 section 3.2, or 0 if all pass."""
        if envelope.engine_id != self._engine_id:
            self.discoveries += not envelope.engine_id
            return v3_message.UNKNOWN_ENGINE
        if envelope.user not in self._users:
            return v3_message.UNKNOWN_USER
        keys = self._keys_of(envelope.user)
        level = envelope.flags & v3_message.LEVEL
        if level & ~keys.flags or (keys.hash and not level):
            return v3_message.UNSUPPORTED_LEVEL
        if level and not v3_message.is_authentic(data, len(data), envelope, keys):
            return v3_message.WRONG_DIGEST
        if level and not self._is_in_time(envelope, now):
            return v3_message.NOT_IN_TIME
        return 0

    def _is_in_time(self, envelope: Envelope, now: float) -> bool:
        boots, time = self.clock(now)
        return envelope.boots == boots and abs(envelope.time - time) <= WINDOW_S

    def _report(self, which: int, envelope: Envelope, now: float) -> bytes | None:
        self.reports[which] += 1
        if not envelope.flags & v3_message.REPORTABLE:
            return None
        value = ber.integer(self.reports[which], ber.COUNTER32)
        row = ber.varbind((*_USM_STATS, which, 0), value)
        pdu = ber.tlv(codec.REPORT, ber.integer(0) * 3 + ber.tlv(ber.SEQUENCE, row))
        flags, keys = 0, Keys()
        if (
            which == v3_message.NOT_IN_TIME
        ):  # the only authenticated report: it sets the clock of the client
            flags, keys = v3_message.AUTH, self._keys_of(envelope.user)
        clock = self.clock(now)
        return v3_message.seal(
            pdu, envelope.user, self._engine_id, clock, keys, envelope.message_id, flags
        )

    def _keys_of(self, user: bytes) -> Keys:
        if user not in self._keys:
            self._keys[user] = self._users[user].localized(self._engine_id)
        return self._keys[user]
