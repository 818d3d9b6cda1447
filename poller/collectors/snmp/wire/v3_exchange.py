"""SNMPv3 as `speaking` needs it: questions sealed for one agent, answers believed only if they are authentic."""

from __future__ import annotations

import random
from collections.abc import Callable

from poller.collectors.snmp.wire import codec, v3_message
from poller.collectors.snmp.wire.codec import Pdu
from poller.collectors.snmp.wire.exchange import Pdus, Question, Reported
from poller.collectors.snmp.wire.usm import Usm
from poller.collectors.snmp.wire.usm_keys import Keys
from poller.collectors.snmp.wire.v3_message import Clock, Envelope

_dice = random.SystemRandom()
_NOBODY = Keys()


class SecuredSpeech:
    """With one user of one agent, in one context."""

    def __init__(self, known: Usm, pdus: Pdus, context: str, clock: Callable[[], float]) -> None:
        self._usm = known
        self._pdus = pdus
        self._context = context.encode()
        self._clock = clock
        self._message_id = 0

    def say(self, question: Question, request_id: int) -> bytes:
        known = self._usm
        self._message_id = _dice.getrandbits(31)
        pdu = self._pdus.write(question, request_id)
        clock = known.clock_at(self._clock())
        flags = known.keys.flags | v3_message.REPORTABLE
        user = known.username.encode()
        return v3_message.seal(
            pdu, user, known.engine_id, clock, known.keys, self._message_id, flags, self._context
        )

    def introduction(self) -> bytes:
        """Who are you? (A request that no agent can answer, but every agent reports about.)"""
        self._message_id = _dice.getrandbits(31)
        pdu = codec.request(codec.GET, self._message_id, 0, 0, ())
        return v3_message.seal(
            pdu, b"", b"", Clock(), _NOBODY, self._message_id, v3_message.REPORTABLE
        )

    def meet(self, data: bytes) -> bool:
        """The answer to an introduction tells the agent's engine id and clock."""
        envelope = v3_message.parse(data, len(data))
        if envelope.message_id != self._message_id or not envelope.engine_id:
            return False
        self._usm.meet(envelope.engine_id)
        self._usm.set_clock(Clock(envelope.boots, envelope.time), self._clock())
        return True

    def hear(self, data: bytes) -> Pdu | None:
        """The answer; None if it is not for us. Raises Reported, Malformed."""
        envelope = v3_message.parse(data, len(data))
        if envelope.message_id != self._message_id:
            return None
        keys = self._usm.keys
        authentic = v3_message.is_authentic(data, len(data), envelope, keys)
        as_asked = envelope.flags & v3_message.LEVEL == keys.flags and (authentic or not keys.hash)
        if not as_asked and envelope.data_tag != codec.SEQUENCE:
            return None
        plain, at, end = v3_message.scoped(data, envelope, keys)
        if plain[at : at + 1] == bytes((codec.REPORT,)):
            self._hear_report(codec.read_pdu(plain, at, end), envelope, authentic)
            return None
        if (
            not as_asked
            or envelope.engine_id != self._usm.engine_id
            or envelope.user != self._usm.username.encode()
        ):
            return None
        self._usm.set_clock(Clock(envelope.boots, envelope.time), self._clock())
        return self._pdus.read(plain[at:end])

    def _hear_report(self, pdu: Pdu, envelope: Envelope, authentic: bool) -> None:
        which = v3_message.reported(pdu)
        if which == v3_message.NOT_IN_TIME:
            if not authentic:  # anybody could set our clock
                return
            self._usm.set_clock(Clock(envelope.boots, envelope.time), self._clock())
        raise Reported(which, again=which == v3_message.NOT_IN_TIME)
