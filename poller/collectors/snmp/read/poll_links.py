"""The links of one poll: opened when needed; kept for the next poll if all went well, else closed."""

from __future__ import annotations

from poller.collectors.credentials import Credential
from poller.collectors.snmp.engines.engine_choice import Engines
from poller.collectors.snmp.engines.engine_protocol import Link
from poller.collectors.snmp.engines.link_pool import Way
from poller.collectors.snmp.read.walker import Patience, Walker
from poller.collectors.snmp.target_memory import Memory


class Visit:
    def __init__(
        self,
        engines: Engines,
        way: Way,
        credential: Credential | None,
        memory: Memory,
        agent: str,
        deadline: float,
    ) -> None:
        self._engines = engines
        self._way = way
        self._credential = credential
        how = memory.walk_settings
        self._patience = Patience(how.timeout_s, how.retries, deadline)
        self._memory = memory
        self._agent = agent
        self._open: list[tuple[Way, Link]] = []

    async def walker(self, number: int = 0) -> Walker:
        """On a link of its own, which has introduced itself."""
        way = self._way._replace(number=number) if number else self._way
        link = self._engines.take(way, self._credential, self._memory.wary)
        link.exact = not self._memory.shapes.types_learned
        self._open.append((way, link))
        walker = Walker(link, self._patience, self._memory.tuning, self._agent)
        walker.allows_disorder = self._memory.walk_settings.allow_nonincreasing_oids
        await walker.begin()
        return walker

    def end(self, well: bool) -> None:
        for way, link in self._open:
            self._memory.wary = self._memory.wary or link.wary
            self._engines.give_back(way, link, well=well)
