"""SNMPv3 framing for `exchange`: sealed requests; responses count only if they are authentic."""

from __future__ import annotations

import random
from collections.abc import Callable

from poller.collectors.snmp.wire import codec, v3_message
from poller.collectors.snmp.wire.codec import Pdu
from poller.collectors.snmp.wire.exchange import ReportReceived, Request
from poller.collectors.snmp.wire.usm import UsmState
from poller.collectors.snmp.wire.usm_keys import Keys
from poller.collectors.snmp.wire.v3_message import Clock, Envelope

_random = random.SystemRandom()


class UsmFraming:
    """Messages of one user to one agent, in one context. `now` is a monotonic clock."""

    def __init__(self, state: UsmState, context: str, now: Callable[[], float]) -> None:
        self._state = state
        self._context = context.encode()
        self._now = now
        self._message_id = 0

    def encode(self, request: Request, request_id: int) -> bytes:
        """A sealed request, under a new message id."""
        state = self._state
        self._message_id = _random.getrandbits(31)
        return v3_message.seal(
            request.pdu(request_id),
            user=state.username.encode(),
            engine_id=state.engine_id,
            clock=state.clock_at(self._now()),
            keys=state.keys,
            message_id=self._message_id,
            flags=state.keys.flags | v3_message.REPORTABLE,
            context=self._context,
        )

    def encode_discovery(self) -> bytes:
        """The discovery message of RFC 3414, 4: an empty request, answered with a report."""
        self._message_id = _random.getrandbits(31)
        return v3_message.seal(
            Request(codec.GET, ()).pdu(self._message_id),
            user=b"",
            engine_id=b"",
            clock=Clock(),
            keys=Keys(),
            message_id=self._message_id,
            flags=v3_message.REPORTABLE,
        )

    def decode_discovery(self, data: bytes) -> bool:
        """Store the engine id and clock from the report; False for any other message."""
        envelope = v3_message.parse(data, len(data))
        if envelope.message_id != self._message_id or not envelope.engine_id:
            return False
        self._state.set_engine(envelope.engine_id)
        self._set_clock(envelope)
        return True

    def decode(self, data: bytes) -> Pdu | None:
        """The response; None for a foreign or forged message. Raises ReportReceived, Malformed."""
        envelope = v3_message.parse(data, len(data))
        if envelope.message_id != self._message_id:
            return None

        keys = self._state.keys
        authentic = v3_message.is_authentic(data, len(data), envelope, keys)
        same_level = envelope.flags & v3_message.LEVEL == keys.flags
        secured = same_level and (authentic or not keys.hash)
        if not secured and envelope.data_tag != codec.SEQUENCE:
            return None

        plain, at, end = v3_message.scoped(data, envelope, keys)
        if plain[at : at + 1] == bytes((codec.REPORT,)):
            self._handle_report(codec.read_pdu(plain, at, end), envelope, authentic)
            return None
        if not secured or not self._is_peer(envelope):
            return None
        self._set_clock(envelope)
        return codec.read_pdu(plain, at, end)

    def _handle_report(self, pdu: Pdu, envelope: Envelope, authentic: bool) -> None:
        """Correct the clock if the report is about time. Raises ReportReceived."""
        report = v3_message.report_of(pdu)
        out_of_time = report == v3_message.NOT_IN_TIME
        if out_of_time:
            if not authentic:  # a forged report must not set the clock
                return
            self._set_clock(envelope)
        raise ReportReceived(report, resend=out_of_time)

    def _is_peer(self, envelope: Envelope) -> bool:
        """Whether the message names our agent and our user."""
        state = self._state
        if envelope.engine_id != state.engine_id:
            return False
        return envelope.user == state.username.encode()

    def _set_clock(self, envelope: Envelope) -> None:
        """Store the agent's clock that a message shows."""
        clock = Clock(envelope.boots, envelope.time)
        self._state.set_clock(clock, self._now())
