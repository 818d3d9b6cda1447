"""State of one SNMPv3 user on one agent between polls, and the meaning of the agent's reports."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from poller import errors
from poller.collectors.credentials import SnmpV3
from poller.collectors.snmp.engines.engine_protocol import Silence
from poller.collectors.snmp.wire import v3_message
from poller.collectors.snmp.wire.usm_keys import Keys, Passwords
from poller.collectors.snmp.wire.v3_message import Clock, ResponsePrefix

_REFUSALS = {
    v3_message.UNSUPPORTED_LEVEL: "the agent does not take this user at this security level",
    v3_message.UNKNOWN_USER: "the agent knows no such user",
    v3_message.UNKNOWN_ENGINE: "another SNMP engine than before answers there",
    v3_message.WRONG_DIGEST: "the authentication password or protocol is wrong",
    v3_message.DECRYPTION: "the privacy password or protocol is wrong",
    v3_message.NOT_IN_TIME: "the agent's clock cannot be followed",
}


@dataclass(slots=True, repr=False)
class UsmState:
    """One user on one agent (USM: user-based security model). Never printed: it holds keys."""

    username: str
    passwords: Passwords
    engine_id: bytes = b""
    keys: Keys = field(default_factory=Keys)
    #: First octets of the agent's encrypted responses; None for a user without privacy.
    response_prefix: ResponsePrefix | None = None
    #: The agent's clock at `clock_at_mono`. gufo keeps its own copy.
    clock: Clock = field(default_factory=Clock)
    clock_at_mono: float = 0.0

    def __repr__(self) -> str:
        return "<UsmState>"

    def set_engine(self, engine_id: bytes) -> None:
        """Derive the keys for the agent's engine. Takes microseconds."""
        self.engine_id = engine_id
        self.keys = self.passwords.localized(engine_id)
        self.response_prefix = None
        if self.keys.cipher:
            user = self.username.encode()
            self.response_prefix = v3_message.response_prefix(engine_id, user, self.keys)

    def set_clock(self, clock: Clock, now: float) -> None:
        """Store the clock that an authentic message has just shown."""
        self.clock = clock
        self.clock_at_mono = now

    def clock_at(self, now: float) -> Clock:
        """The agent's clock at an instant of ours."""
        clock = self.clock
        passed_s = int(now - self.clock_at_mono)
        return Clock(clock.boots, clock.time + passed_s)


def new_state(credential: SnmpV3) -> UsmState:
    """The state of an agent before its discovery."""
    return UsmState(credential.username, passwords(credential))


def passwords(credential: SnmpV3) -> Passwords:
    """Passwords and protocols of a credential."""
    auth = credential.auth_password
    priv = credential.priv_password
    return Passwords(
        auth_protocol=credential.auth_protocol,
        auth=auth.get_secret_value().encode() if auth else b"",
        priv_protocol=credential.priv_protocol,
        priv=priv.get_secret_value().encode() if priv else b"",
    )


def fingerprint(credential: SnmpV3) -> str:
    """A digest that differs between users and passwords and reveals neither."""
    content = repr((credential.username, *passwords(credential)))
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def silence(known: Passwords, context: str = "") -> Silence:
    """The likely cause of an agent that answers the discovery and no request of this user.

    Agents need not report what they cannot authenticate or decrypt; net-snmp reports the former.
    """
    causes = ["wrong user name"]
    fields = "username"
    if known.auth:
        causes = ["wrong user name, authentication password or protocol"]
        fields = "username, auth_password and auth_protocol"
    if known.priv:
        causes.insert(0, "wrong privacy password or protocol")
        fields = "priv_password and priv_protocol"
    if context:
        causes.append("no such context")
    causes.append("or an access list or view without this user")
    hint = f"check {fields} of the credential; store others with poller credential rotate"
    return Silence("; ".join(causes), hint)


def refusal(report: int, agent: str) -> errors.DeviceError:
    """The device error for a report of the agent."""
    if report in (v3_message.UNKNOWN_CONTEXT, v3_message.UNAVAILABLE_CONTEXT):
        return errors.DeviceUnsupported(
            f"{agent} has no such SNMP context", cause="see the option context"
        )
    cause = _REFUSALS.get(report, "the agent did not say why")
    return errors.DeviceAuthFailed(f"{agent} refused our SNMP credential", cause=cause)
