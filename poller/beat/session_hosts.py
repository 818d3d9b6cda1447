"""Where are the devices of targets whose collectors keep sessions? Read from SQL beside the ticks, kept in memory."""

from __future__ import annotations

import sys

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed


class Hosts:
    """`want` and `of` are the tick's, `refresh` is the bookkeeper's. Nothing of a fleet without sessions is read."""

    def __init__(self) -> None:
        self._wanted: frozenset[str] = frozenset()
        self._read: frozenset[str] = frozenset()
        self._version = 0
        self._hosts: dict[int, str] = {}

    def want(self, collectors: set[str]) -> bool:
        """From now on the targets of these collectors, too; true if some of them are not read yet."""
        self._wanted |= collectors
        return not collectors <= self._read

    def of(self, target_id: int) -> str:
        """The address of its device; empty if we do not know it yet."""
        return self._hosts.get(target_id, "")

    def refresh(self, engine: Engine) -> None:
        """What changed since the last time. Raises StoreError."""
        wanted = self._wanted
        if not wanted:
            return
        now = inventory_feed.version(engine)
        if wanted == self._read and now == self._version:
            return
        anew = wanted != self._read or now < self._version
        found = inventory_feed.hosts_since(engine, wanted, 0 if anew else self._version)
        hosts = {target_id: sys.intern(address) for target_id, address in found.hosts}
        if anew:
            self._hosts = hosts
        else:
            for target_id in found.removed:
                self._hosts.pop(target_id, None)
            self._hosts.update(hosts)
        self._read, self._version = wanted, found.version
