"""SNMPv3 users: what is remembered of them and of the agents that know them, and what an agent's reports mean."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from poller import errors
from poller.collectors.credentials import SnmpV3
from poller.collectors.snmp.wire import v3_message
from poller.collectors.snmp.wire.usm_keys import Keys, Passwords
from poller.collectors.snmp.wire.v3_message import Clock, Usual

_REFUSALS = {
    v3_message.UNSUPPORTED_LEVEL: "the agent does not take this user at this security level",
    v3_message.UNKNOWN_USER: "the agent knows no such user",
    v3_message.UNKNOWN_ENGINE: "another SNMP engine than before answers there",
    v3_message.WRONG_DIGEST: "the authentication password or protocol is wrong",
    v3_message.DECRYPTION: "the privacy password or protocol is wrong",
    v3_message.NOT_IN_TIME: "the agent's clock cannot be followed",
}


@dataclass(slots=True, repr=False)
class Usm:
    """One user on one agent, between polls. Never printed: it holds keys."""

    username: str
    passwords: Passwords
    engine_id: bytes = b""
    keys: Keys = field(default_factory=Keys)
    #: How an encrypted answer of it begins.
    usual: Usual | None = None
    #: The agent's clock, and when (on ours) it said so. Known only where we read the messages ourselves.
    clock: Clock = field(default_factory=Clock)
    heard_at: float = 0.0

    def __repr__(self) -> str:
        return "<Usm>"

    def meet(self, engine_id: bytes) -> None:
        """From now on messages are for this engine; making its keys takes microseconds."""
        self.engine_id = engine_id
        self.keys = self.passwords.localized(engine_id)
        encrypted = bool(self.keys.cipher)
        self.usual = (
            v3_message.usual(engine_id, self.username.encode(), self.keys) if encrypted else None
        )

    def set_clock(self, clock: Clock, now: float) -> None:
        self.clock, self.heard_at = clock, now

    def clock_at(self, now: float) -> Clock:
        return Clock(self.clock.boots, self.clock.time + int(now - self.heard_at))


def remember(credential: SnmpV3) -> Usm:
    return Usm(credential.username, passwords(credential))


def passwords(credential: SnmpV3) -> Passwords:
    auth, priv = credential.auth_password, credential.priv_password
    return Passwords(
        credential.auth_protocol,
        auth.get_secret_value().encode() if auth else b"",
        credential.priv_protocol,
        priv.get_secret_value().encode() if priv else b"",
    )


def fingerprint(credential: SnmpV3) -> str:
    """Tells users apart without being a secret."""
    everything = repr((credential.username, *passwords(credential)))
    return hashlib.blake2b(everything.encode(), digest_size=16).hexdigest()


def refusal(report: int, agent: str) -> errors.DeviceError:
    """What a report means to whoever polls."""
    if report in (v3_message.UNKNOWN_CONTEXT, v3_message.UNAVAILABLE_CONTEXT):
        return errors.DeviceUnsupported(
            f"{agent} has no such SNMP context", cause="see the option context"
        )
    cause = _REFUSALS.get(report, "the agent did not say why")
    return errors.DeviceAuthFailed(f"{agent} refused our SNMP credential", cause=cause)
