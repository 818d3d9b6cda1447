"""Devices by the addresses that their datagrams come from, refreshed from the inventory.

A refresh runs in a thread and replaces the table as a whole, so a lookup never waits.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed, trap_senders
from poller.db.inventory.trap_senders import Sender

#: A host name is resolved again after this time.
_RESOLVED_FOR_S = 600.0
_RESOLVER_THREADS = 8

Resolve = Callable[[str], Sequence[str]]


def addresses_of(name: str) -> list[str]:
    """All addresses of a host name; none if it does not resolve."""
    try:
        results = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
        return sorted({normal_address(str(result[4][0])) for result in results})
    except (OSError, UnicodeError, ValueError):
        return []


def normal_address(address: str) -> str:
    """One spelling per address: no scope, mapped IPv4 as IPv4. ValueError for a host name."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


class _Resolved(NamedTuple):
    """Addresses of a host name, and the monotonic instant of their next resolution."""

    addresses: Sequence[str] = ()
    expires_mono: float = 0.0


class SenderTable:
    """`by_address` may be read at any time, from any thread; `refresh` belongs to one thread."""

    def __init__(self, engine: Engine, resolve: Resolve = addresses_of) -> None:
        self.by_address: Mapping[str, tuple[Sender, ...]] = {}
        self._engine = engine
        self._resolve = resolve
        self._inventory: trap_senders.Senders | None = None
        self._resolved: dict[str, _Resolved] = {}
        self._pending: dict[str, Future[Sequence[str]]] = {}
        self._pool = ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolve")

    def refresh(self) -> bool:
        """Read the inventory if it changed. True if the table changed.

        Raises StoreError; the table then stays as it was.
        """
        version = inventory_feed.version(self._engine) if self._inventory else None
        inventory_changed = self._inventory is None or version != self._inventory.version
        if inventory_changed:
            self._inventory = trap_senders.read(self._engine)

        names_changed = self._refresh_names()
        if inventory_changed or names_changed:
            self.by_address = self._index()
            return True
        return False

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _senders(self) -> Sequence[Sender]:
        """Devices of the last inventory that was read."""
        return self._inventory.senders if self._inventory else ()

    def _index(self) -> dict[str, tuple[Sender, ...]]:
        """The devices at each address."""
        table: dict[str, list[Sender]] = {}
        for sender in self._senders():
            for address in self._addresses(sender.address):
                table.setdefault(address, []).append(sender)
        return {address: tuple(senders) for address, senders in table.items()}

    def _addresses(self, address: str) -> Iterable[str]:
        """Addresses of a literal or of a resolved host name."""
        try:
            return (normal_address(address),)
        except ValueError:
            return self._resolved.get(address, _Resolved()).addresses

    def _refresh_names(self) -> bool:
        """Store finished resolutions, start those that are due. True if an address changed."""
        now = time.monotonic()
        changed = False
        for name, future in list(self._pending.items()):
            if not future.done():
                continue
            del self._pending[name]
            before = self._resolved.get(name, _Resolved())
            addresses = tuple(future.result())
            self._resolved[name] = _Resolved(addresses, now + _RESOLVED_FOR_S)
            if addresses != before.addresses:
                changed = True

        names = {sender.address for sender in self._senders() if not _is_literal(sender.address)}
        for name in names:
            expired = self._resolved.get(name, _Resolved()).expires_mono <= now
            if expired and name not in self._pending:
                self._pending[name] = self._pool.submit(self._resolve, name)
        for name in self._resolved.keys() - names:
            del self._resolved[name]
        return changed


def _is_literal(address: str) -> bool:
    try:
        normal_address(address)
    except ValueError:
        return False
    return True
