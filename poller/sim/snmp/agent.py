"""One device as an SNMP agent: bytes in, bytes or silence out. Knows no socket and no fault of delivery."""

from __future__ import annotations

import functools

from poller.collectors.snmp.wire.usm_keys import Passwords
from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp import ber, mib, reply_plan, snmp_request
from poller.sim.snmp.mib import Identity
from poller.sim.snmp.reply_plan import Plan
from poller.sim.snmp.usm_agent import Asked, Authority

_ENGINE_PREFIX = bytes.fromhex("80001f8805")  # net-snmp's enterprise, then octets of our own
MAX_PLANS = 4096  # per chassis: far more than honest clients need, little enough for hostile ones

_Plans = dict[tuple[int, int, bytes], Plan | None]
_plans: dict[tuple[str, int], _Plans] = {}  # devices of one chassis share their plans


class Agent:
    __slots__ = ("_authority", "_heads", "_identity", "_plans", "_tree", "community", "device")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.community = device.community.encode()
        lived = device_traffic.life(device.salt, device.fault is Fault.REBOOT)
        self._identity = Identity(device.name, device.site, hardware.first_mac(device.salt), lived)
        self._heads = _heads(self.community)
        self._authority: Authority | None = None  # until somebody speaks version 3
        self._tree = mib.mib(device.model, device.variant)
        self._plans = _plans.setdefault((device.model, device.variant), {})

    def answer(self, data: bytes, now: float) -> bytes | None:
        """The reply to a datagram, or None where an agent keeps silent."""
        try:
            version, community, pdu, request_id, rest = snmp_request.split(data)
            if community != self.community:
                return None
            found = self._plans.get((version, pdu, rest), _UNSEEN)
            if found is _UNSEEN:
                found = self._learn(version, pdu, rest)
        except ber.Malformed:
            return self._answer_v3(data, now)
        if not isinstance(found, Plan):
            return None
        return self._message(version, request_id, found, now)

    @property
    def discoveries(self) -> int:
        """How often somebody asked for its SNMPv3 engine id."""
        return self._authority.discoveries if self._authority else 0

    def _answer_v3(self, data: bytes, now: float) -> bytes | None:
        if self._authority is None:
            self._authority = _authority(self.device, now)
        asked = self._authority.receive(data, now)
        if not isinstance(asked, Asked):
            return asked
        try:
            pdu, request_id, rest = snmp_request.split_pdu(asked.pdu)
            found = self._plans.get((snmp_request.V2C, pdu, rest), _UNSEEN)
            if found is _UNSEEN:
                found = self._learn(snmp_request.V2C, pdu, rest)
        except ber.Malformed:
            return None
        if not isinstance(found, Plan):
            return None
        variables = found.fill(self._identity, now)
        body = request_id + found.status + len(variables).to_bytes(2, "big") + variables
        return self._authority.seal(ber.tlv(snmp_request.RESPONSE, body), asked, now)

    def _message(self, version: int, request_id: bytes, found: Plan, now: float) -> bytes:
        """Two-octet lengths throughout: legal BER, and what the best-known agent sends as well."""
        variables = found.fill(self._identity, now)
        head, status = self._heads[version], found.status
        inner = len(request_id) + len(status) + 2 + len(variables)
        return b"".join(
            (
                b"\x30\x82",
                (inner + len(head) + 2).to_bytes(2, "big"),
                head,
                inner.to_bytes(2, "big"),
                request_id,
                status,
                len(variables).to_bytes(2, "big"),
                variables,
            )
        )

    def _learn(self, version: int, pdu: int, rest: bytes) -> Plan | None:
        if version not in self._heads:
            return None
        made = reply_plan.make(self._tree, version, pdu, snmp_request.parse(rest))
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[version, pdu, rest] = made
        return made


def _authority(device: SimDevice, now: float) -> Authority:
    """One user, with the password of the device for both of authentication and privacy."""
    password = device.password.encode()
    users = {fleet.USERNAME.encode(): Passwords("SHA", password, "AES", password)}
    engine_id = _ENGINE_PREFIX + device.salt.to_bytes(8, "big")
    return Authority(engine_id, users, started=now)


@functools.cache
def _heads(community: bytes) -> dict[int, bytes]:
    """By version, everything between the length of a message and the length of its PDU."""
    rest = ber.octets(community) + bytes((snmp_request.RESPONSE, 0x82))
    return {version: ber.integer(version) + rest for version in (snmp_request.V1, snmp_request.V2C)}


_UNSEEN = object()
