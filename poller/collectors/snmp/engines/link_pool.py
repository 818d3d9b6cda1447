"""Links to agents: chosen by engine, kept open from one poll to the next, closed after a failure.

Opening and closing a link costs a tenth of a small poll. One pool serves a worker process.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import Literal, NamedTuple

from poller import errors
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.engines import exact_engine, gufo_community, gufo_v3
from poller.collectors.snmp.engines.engine_protocol import Link
from poller.collectors.snmp.wire import usm
from poller.collectors.snmp.wire.usm import UsmState

EngineOption = Literal["auto", "gufo", "exact"]

#: An idle link is closed after this time.
IDLE_S = 600.0
_MAX_IDLE = 8192
#: Idle links use at most one in this many of the process's files.
_FILES_PER_LINK = 8
#: SNMPv3 agents whose state is kept; each takes about a kilobyte.
_MAX_V3_AGENTS = 50_000
#: The state of an SNMPv3 agent that is polled elsewhere is dropped after this time.
AGENT_IDLE_S = 7200.0


class LinkKey(NamedTuple):
    """Identifies a link: the agent, the user and the engine. Never printed: it holds a secret."""

    address: str
    port: int
    version: str
    #: The community, or a fingerprint of the SNMPv3 user.
    secret: str
    context: str = ""
    engine: str = "gufo"
    #: Number of the link among the parallel links of one poll.
    number: int = 0

    def __repr__(self) -> str:
        return f"<LinkKey of {self.address} port {self.port}>"


def link_key(
    address: str,
    port: int,
    version: str,
    credential: Credential | None,
    context: str = "",
    engine: EngineOption = "auto",
) -> LinkKey:
    """The key of the first link of a poll. Chooses the engine: `exact` for contexts, else gufo.

    Raises DeviceAuthFailed without an SNMP credential, DeviceUnsupported for a community with a
    context.
    """
    if isinstance(credential, SnmpV3):
        if engine == "auto":
            engine = "exact" if context else "gufo"
        return LinkKey(address, port, "3", usm.fingerprint(credential), context, engine)

    if not isinstance(credential, Community):
        raise errors.DeviceAuthFailed(
            "no SNMP credential",
            cause="the target and its device have none of kind community or snmpv3",
        )
    if context:
        raise errors.DeviceUnsupported(
            "only SNMPv3 has contexts, and the credential is a community",
            hint="remove the option context, or use a credential of kind snmpv3",
        )
    community = credential.community.get_secret_value()
    chosen = "gufo" if engine == "auto" else engine
    return LinkKey(address, port, version, community, engine=chosen)


class LinkPool:
    """Open links and SNMPv3 agents. An acquired link belongs to its poll until it is released."""

    def __init__(self, max_idle: int | None = None) -> None:
        if max_idle is None:
            files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            max_idle = min(_MAX_IDLE, files // _FILES_PER_LINK)
        self._max_idle = max_idle
        #: Idle links with the instant of their release, the longest unused first.
        self._idle: OrderedDict[LinkKey, tuple[Link, float]] = OrderedDict()
        #: SNMPv3 agents with the instant of their last use, the longest unused first.
        self._agents: OrderedDict[LinkKey, tuple[UsmState, float]] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        """Number of idle links."""
        return len(self._idle)

    def acquire(
        self, key: LinkKey, credential: Credential | None, codec_only: bool = False
    ) -> Link:
        """An idle link, or a new one. `codec_only`: gufo could not read this agent before."""
        self._follow_loop()
        link, _ = self._idle.pop(key, (None, 0.0))
        if link is not None:
            link.resume()
            return link

        if isinstance(credential, SnmpV3):
            state = self._usm_state(key, credential)
            if key.engine == "exact":
                return exact_engine.connect_v3(key.address, key.port, state, key.context)
            return gufo_v3.connect(key.address, key.port, state, codec_only)
        if key.engine == "exact":
            return exact_engine.connect(key.address, key.port, key.secret, key.version)
        return gufo_community.connect(key.address, key.port, key.secret, key.version, codec_only)

    def release(self, key: LinkKey, link: Link, *, reusable: bool) -> None:
        """Keep a `reusable` link for the next poll if the pool has space, else close it.

        A full pool keeps the links that it has. Devices are polled in turn, so eviction would close
        every link shortly before its next use.
        """
        now = asyncio.get_running_loop().time()
        if key.version == "3":
            self._use_agent(_agent_key(key), now)
        while self._idle and next(iter(self._idle.values()))[1] < now - IDLE_S:
            _, (expired, _) = self._idle.popitem(last=False)
            expired.close()

        full = key in self._idle or len(self._idle) >= self._max_idle
        if full or not reusable or link.codec_only:
            link.close()
            return
        link.pause()
        self._idle[key] = (link, now)

    def knows_agent(self, key: LinkKey) -> bool:
        """Whether the engine of this SNMPv3 agent was discovered before."""
        state, _ = self._agents.get(_agent_key(key), (None, 0.0))
        return state is not None and bool(state.engine_id)

    def forget_agent(self, key: LinkKey) -> None:
        """Drop the state of an SNMPv3 agent that may have been replaced."""
        self._agents.pop(_agent_key(key), None)

    def close(self) -> None:
        """Close all idle links and drop all agents."""
        while self._idle:
            _, (link, _) = self._idle.popitem()
            link.close()
        self._agents.clear()

    def _usm_state(self, key: LinkKey, credential: SnmpV3) -> UsmState:
        """The state of an SNMPv3 agent, shared by all targets, contexts and engines."""
        agent = _agent_key(key)
        now = asyncio.get_running_loop().time()
        known = self._use_agent(agent, now)
        if known is not None:
            return known

        if len(self._agents) >= _MAX_V3_AGENTS:
            self._agents.popitem(last=False)
        state = usm.new_state(credential)
        self._agents[agent] = (state, now)
        return state

    def _use_agent(self, agent: LinkKey, now: float) -> UsmState | None:
        """The state of an agent in use, if it was not forgotten; drops those that are idle."""
        state, _ = self._agents.pop(agent, (None, now))
        if state is not None:
            self._agents[agent] = (state, now)
        while self._agents and next(iter(self._agents.values()))[1] < now - AGENT_IDLE_S:
            self._agents.popitem(last=False)
        return state

    def _follow_loop(self) -> None:
        """Drop the idle links of an event loop that has ended: they cannot move to another one."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._idle.clear()
            self._loop = loop


def _agent_key(key: LinkKey) -> LinkKey:
    """The key of an agent and user, for all its links."""
    return key._replace(context="", engine="", number=0)
