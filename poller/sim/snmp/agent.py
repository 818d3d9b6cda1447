"""One device as an SNMP agent: turns a datagram into a reply or None. Opens no socket."""

from __future__ import annotations

import functools

from poller.collectors.snmp.wire.usm_keys import Passwords
from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp import ber, mib, neighbour_rows, reply_plan, snmp_request
from poller.sim.snmp.mib import Identity
from poller.sim.snmp.reply_plan import Plan
from poller.sim.snmp.usm_agent import Authority, SecuredRequest

_ENGINE_PREFIX = bytes.fromhex("80001f8805")  # the enterprise of net-snmp, format: octets
MAX_PLANS = 4096  # per chassis: more than pollers need; limits the memory for hostile clients

_Plans = dict[tuple[int, int, bytes], Plan | None]
_plans: dict[tuple[str, int], _Plans] = {}  # devices of one chassis share their plans


class Agent:
    """An agent for SNMP v1, v2c and v3. Agents of one chassis share their reply plans."""

    __slots__ = ("_authority", "_heads", "_identity", "_plans", "_tree", "community", "device")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.community = device.community.encode()
        lived = device_traffic.life(device.salt, device.fault is Fault.REBOOT)
        self._identity = Identity(device.name, device.site, hardware.first_mac(device.salt), lived)
        self._heads = _heads(self.community)
        self._authority: Authority | None = None  # made at the first message of version 3
        if device.neighbours:
            more = neighbour_rows.rows(device)
            self._tree = mib.extended(device.model, device.variant, more)
            self._plans: _Plans = {}
        else:
            self._tree = mib.mib(device.model, device.variant)
            self._plans = _plans.setdefault((device.model, device.variant), {})

    def answer(self, data: bytes, now: float) -> bytes | None:
        """Return the reply to a datagram, or None where an agent does not answer."""
        try:
            version, community, pdu, request_id, rest = snmp_request.split(data)
            if community != self.community:
                return None
            plan = self._plans.get((version, pdu, rest), _UNCACHED)
            if plan is _UNCACHED:
                plan = self._make_plan(version, pdu, rest)
        except ber.Malformed:
            return self._answer_v3(data, now)
        if not isinstance(plan, Plan):
            return None
        return self._message(version, request_id, plan, now)

    @property
    def discoveries(self) -> int:
        """The number of requests for the SNMPv3 engine id."""
        return self._authority.discoveries if self._authority else 0

    def _answer_v3(self, data: bytes, now: float) -> bytes | None:
        if self._authority is None:
            self._authority = _authority(self.device, now)
        request = self._authority.receive(data, now)
        if not isinstance(request, SecuredRequest):
            return request
        try:
            pdu, request_id, rest = snmp_request.split_pdu(request.pdu)
            plan = self._plans.get((snmp_request.V2C, pdu, rest), _UNCACHED)
            if plan is _UNCACHED:
                plan = self._make_plan(snmp_request.V2C, pdu, rest)
        except ber.Malformed:
            return None
        if not isinstance(plan, Plan):
            return None
        variables = plan.fill(self._identity, now)
        body = request_id + plan.status + len(variables).to_bytes(2, "big") + variables
        return self._authority.seal(ber.tlv(snmp_request.RESPONSE, body), request, now)

    def _message(self, version: int, request_id: bytes, plan: Plan, now: float) -> bytes:
        """Encode a reply. All lengths have two octets, as in the replies of net-snmp."""
        variables = plan.fill(self._identity, now)
        head, status = self._heads[version], plan.status
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

    def _make_plan(self, version: int, pdu: int, rest: bytes) -> Plan | None:
        if version not in self._heads:
            return None
        plan = reply_plan.make(self._tree, version, pdu, snmp_request.parse(rest))
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[version, pdu, rest] = plan
        return plan


def _authority(device: SimDevice, now: float) -> Authority:
    """Return the SNMPv3 engine of a device. Its user has one password for both keys."""
    password = device.password.encode()
    users = {fleet.USERNAME.encode(): Passwords("SHA", password, "AES", password)}
    engine_id = _ENGINE_PREFIX + device.salt.to_bytes(8, "big")
    return Authority(engine_id, users, started=now)


@functools.cache
def _heads(community: bytes) -> dict[int, bytes]:
    """Return by version the octets between the length of a message and the length of its PDU."""
    rest = ber.octets(community) + bytes((snmp_request.RESPONSE, 0x82))
    return {version: ber.integer(version) + rest for version in (snmp_request.V1, snmp_request.V2C)}


_UNCACHED = object()
