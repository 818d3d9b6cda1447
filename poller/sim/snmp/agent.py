"""One device as an SNMP agent: bytes in, bytes or silence out. Knows no socket and no fault of delivery."""

from __future__ import annotations

from poller.sim import hardware, life
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp import ber, mib, plan, request
from poller.sim.snmp.mib import Identity
from poller.sim.snmp.plan import Plan

MAX_PLANS = 4096  # per chassis: far more than honest clients need, little enough for hostile ones

_Plans = dict[tuple[int, int, bytes], Plan | None]
_plans: dict[tuple[str, int], _Plans] = {}  # devices of one chassis share their plans


class Agent:
    __slots__ = ("_boots_vary", "_identity", "_life", "_plans", "_tree", "community", "device")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.community = device.community.encode()
        self._life = life.life(device.salt, device.fault is Fault.REBOOT)
        self._boots_vary = device.fault is Fault.REBOOT
        self._identity = Identity(device.name, device.site, hardware.first_mac(device.salt), 1)
        self._tree = mib.mib(device.model, device.variant)
        self._plans = _plans.setdefault((device.model, device.variant), {})

    def answer(self, data: bytes, now: float) -> bytes | None:
        """The reply to a datagram, or None where an agent keeps silent."""
        try:
            version, community, pdu, request_id, rest = request.split(data)
            if community != self.community:
                return None
            found = self._plans.get((version, pdu, rest), _UNSEEN)
            if found is _UNSEEN:
                found = self._learn(version, pdu, rest)
        except ber.Malformed:
            return None
        if not isinstance(found, Plan):
            return None
        return self._message(version, request_id, found, now)

    def _message(self, version: int, request_id: bytes, found: Plan, now: float) -> bytes:
        """Two-octet lengths throughout: legal BER, and what the best-known agent sends as well."""
        variables = found.fill(self._life.waves(now), self._who(now))
        status = found.status
        head = _HEADS[version]
        inner = len(request_id) + len(status) + 4 + len(variables)
        outer = inner + 4 + len(head) + 1 + len(self.community)
        return b"".join(
            (
                b"\x30\x82",
                outer.to_bytes(2, "big"),
                head,
                bytes((len(self.community),)),
                self.community,
                b"\xa2\x82",
                inner.to_bytes(2, "big"),
                request_id,
                status,
                b"\x30\x82",
                len(variables).to_bytes(2, "big"),
                variables,
            )
        )

    def _who(self, now: float) -> Identity:
        if self._boots_vary:
            return self._identity._replace(boots=self._life.boots(now))
        return self._identity

    def _learn(self, version: int, pdu: int, rest: bytes) -> Plan | None:
        if version not in _HEADS:
            return None
        made = plan.make(self._tree, version, pdu, request.parse(rest))
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[version, pdu, rest] = made
        return made


_UNSEEN = object()
_HEADS = {version: bytes((ber.INTEGER, 1, version, ber.OCTET_STRING)) for version in (request.V1, request.V2C)}
