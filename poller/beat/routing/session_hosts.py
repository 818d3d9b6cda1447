"""Device addresses of targets whose collectors keep sessions: their worker is that of the host."""

from __future__ import annotations

import sys

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed


class SessionHosts:
    """Device addresses of the targets whose collectors hold sessions, cached from SQL.

    The tick calls `add_collectors` and `address_of`, the SQL thread calls `refresh`. For a fleet
    without sessions nothing is read.
    """

    def __init__(self) -> None:
        self._collectors: frozenset[str] = frozenset()
        self._cached_collectors: frozenset[str] = frozenset()
        self._version = 0
        self._addresses: dict[int, str] = {}

    def add_collectors(self, collectors: set[str]) -> bool:
        """Cache the targets of these collectors too. Returns whether a refresh is needed."""
        self._collectors |= collectors
        return not collectors <= self._cached_collectors

    def address_of(self, target_id: int) -> str:
        """The address of the target's device; "" if it is not cached."""
        return self._addresses.get(target_id, "")

    def refresh(self, engine: Engine) -> None:
        """Read the changes of the inventory since the last refresh. Raises StoreError."""
        collectors = self._collectors
        if not collectors:
            return
        version = inventory_feed.version(engine)
        same_collectors = collectors == self._cached_collectors
        if same_collectors and version == self._version:
            return

        read_all = not same_collectors or version < self._version
        since = 0 if read_all else self._version
        changes = inventory_feed.hosts_since(engine, collectors, since)
        if since and not changes.is_complete:
            read_all = True
            changes = inventory_feed.hosts_since(engine, collectors, 0)
        addresses = {target_id: sys.intern(address) for target_id, address in changes.hosts}
        if read_all:
            self._addresses = addresses
        else:
            for target_id in changes.removed:
                self._addresses.pop(target_id, None)
            self._addresses.update(addresses)
        self._cached_collectors = collectors
        self._version = changes.version
