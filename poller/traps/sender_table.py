"""Whose address is that? Devices by the address their datagrams come from, kept in step with the inventory.

Made in a thread of its own and swapped in whole: whoever looks up an address never waits.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed, trap_senders
from poller.db.inventory.trap_senders import Sender

#: Host names are asked for again after so long.
RESOLVED_FOR_S = 600.0
_RESOLVERS = 8

Resolve = Callable[[str], Sequence[str]]


def addresses_of(name: str) -> list[str]:
    """Every address of a host name; none when it has none."""
    try:
        return sorted(
            {
                normal(str(found[4][0]))
                for found in socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
            }
        )
    except (OSError, UnicodeError, ValueError):
        return []


def normal(address: str) -> str:
    """One spelling for one address: no scope, and an IPv4 one as such. ValueError if it is none."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


class Directory:
    """`by_address` may be read at any time; `refresh` belongs to one thread."""

    def __init__(self, engine: Engine, resolve: Resolve = addresses_of) -> None:
        self.by_address: Mapping[str, tuple[Sender, ...]] = {}
        self._engine = engine
        self._resolve = resolve
        self._known: trap_senders.Senders | None = None
        self._names: dict[str, tuple[float, Sequence[str]]] = {}
        self._asked: dict[str, Future[Sequence[str]]] = {}
        self._pool = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="resolve")

    def refresh(self) -> bool:
        """Read what changed. True when anything did. Raises StoreError, and then all stays as it was."""
        changed = self._known is None or inventory_feed.version(self._engine) != self._known.version
        if changed:
            self._known = trap_senders.read(self._engine)
        if self._settle_names() or changed:
            self.by_address = self._index()
            return True
        return False

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _index(self) -> dict[str, tuple[Sender, ...]]:
        table: dict[str, list[Sender]] = {}
        for sender in self._known.senders if self._known else ():
            for address in self._places(sender.address):
                table.setdefault(address, []).append(sender)
        return {address: tuple(found) for address, found in table.items()}

    def _places(self, address: str) -> Iterable[str]:
        try:
            return (normal(address),)
        except ValueError:
            return self._names.get(address, (0.0, ()))[1]

    def _settle_names(self) -> bool:
        """Take answers that came, ask for names that are new or old. True when an answer is news."""
        now = time.monotonic()
        news = False
        for name in [name for name, answer in self._asked.items() if answer.done()]:
            found = tuple(self._asked.pop(name).result())
            news |= found != self._names.get(name, (0.0, ()))[1]
            self._names[name] = (now + RESOLVED_FOR_S, found)
        wanted = (
            {sender.address for sender in self._known.senders if not _is_literal(sender.address)}
            if self._known
            else set()
        )
        for name in wanted:
            if self._names.get(name, (0.0, ()))[0] <= now and name not in self._asked:
                self._asked[name] = self._pool.submit(self._resolve, name)
        self._names = {name: answer for name, answer in self._names.items() if name in wanted}
        return news


def _is_literal(address: str) -> bool:
    try:
        normal(address)
    except ValueError:
        return False
    return True
