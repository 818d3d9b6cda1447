"""Which engine speaks to an agent, over which link? One of these per process; it remembers links and SNMPv3 agents."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from poller import errors
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.engines import gufo_engine, gufo_v3, pysnmp_pdus
from poller.collectors.snmp.engines.engine_protocol import Link
from poller.collectors.snmp.engines.link_pool import Links, Way
from poller.collectors.snmp.wire import usm
from poller.collectors.snmp.wire.usm import Usm

Choice = Literal["auto", "gufo", "pysnmp"]
#: SNMPv3 agents that are remembered; each takes about a kilobyte.
_MOST_AGENTS = 50_000


def way_to(
    address: str,
    port: int,
    version: str,
    credential: Credential | None,
    context: str = "",
    engine: Choice = "auto",
) -> Way:
    """Who is to be asked, how, and by which engine. Opens nothing."""
    if isinstance(credential, SnmpV3):
        chosen = ("pysnmp" if context else "gufo") if engine == "auto" else engine
        return Way(address, port, "3", usm.fingerprint(credential), context, chosen)
    if not isinstance(credential, Community):
        raise errors.DeviceAuthFailed(
            "no SNMP credential",
            cause="the target and its device have none of kind community or snmpv3",
        )
    if context:
        raise errors.DeviceUnsupported(
            "only SNMPv3 has contexts, and the credential is a community",
            hint="leave the option context away, or use a credential of kind snmpv3",
        )
    secret = credential.community.get_secret_value()
    return Way(address, port, version, secret, engine="gufo" if engine == "auto" else engine)


class Engines:
    """Links in use belong to whoever took them; all of it on one loop."""

    def __init__(self) -> None:
        self.links = Links()
        self._agents: OrderedDict[Way, Usm] = OrderedDict()  # the longest unused first

    def take(self, way: Way, credential: Credential | None, wary: bool = False) -> Link:
        """A link that was kept, or a new one. `wary`: gufo could not read this agent the last time."""
        kept = self.links.take(way)
        if kept is not None:
            return kept
        if isinstance(credential, SnmpV3):
            return self._connect_v3(way, credential, wary)
        if way.engine == "pysnmp":
            return pysnmp_pdus.connect(way.address, way.port, way.secret, way.version)
        return gufo_engine.connect(way.address, way.port, way.secret, way.version, wary)

    def _connect_v3(self, way: Way, credential: SnmpV3, wary: bool) -> Link:
        known = self._known(way, credential)
        if way.engine == "pysnmp":
            return pysnmp_pdus.connect_v3(way.address, way.port, known, way.context)
        return gufo_v3.connect(way.address, way.port, known, wary)

    def give_back(self, way: Way, link: Link, *, well: bool) -> None:
        """After a poll: the link is kept if everything went well, and closed if not."""
        if well and not link.wary:
            self.links.keep(way, link)
        else:
            link.close()

    def forget(self, way: Way) -> bool:
        """After a failure another agent may be there: meet it anew. True if one was known."""
        known = self._agents.pop(way._replace(context="", engine="", number=0), None)
        return known is not None and bool(known.engine_id)

    def close(self) -> None:
        self.links.close()
        self._agents.clear()

    def _known(self, way: Way, credential: SnmpV3) -> Usm:
        """Shared by all targets of a device, all contexts and both engines."""
        name = way._replace(context="", engine="", number=0)
        if name in self._agents:
            self._agents.move_to_end(name)
            return self._agents[name]
        if len(self._agents) >= _MOST_AGENTS:
            self._agents.popitem(last=False)
        self._agents[name] = usm.remember(credential)
        return self._agents[name]
