"""The requests of a route, encoded once, and the OIDs that their responses must have.

A poll of a known device sends the same requests as the poll before and gets the same OIDs. A replay
sends the prepared octets and compares the names, so no OID becomes text. It is shared by all
devices with the same route. Anything unexpected ends the replay: the route is then followed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from poller.collectors.snmp.engines.engine_protocol import PreparedRequest, Row
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.route import Route
from poller.collectors.snmp.wire import codec

#: Replays cached for all devices together.
_MAX_REPLAYS = 1_024
#: An OID element of at most this many octets has a length of one octet.
_MAX_NAME = 127

_replays: dict[tuple[object, ...], Replay] = {}


class Replay(NamedTuple):
    """The prepared requests of one route, for certain request sizes."""

    #: Walks in the order of the ranges, then the GETs.
    requests: tuple[PreparedRequest, ...]
    #: Number of the walks among them.
    walks: int
    #: Hash of the OIDs of all rows, in the order of the route.
    oids_hash: int
    row_size: int
    oid_size: int

    def fits(self, sizes: RequestSizes) -> bool:
        """Whether the route would be followed with these requests now."""
        return self.row_size == sizes.rows.now and self.oid_size == sizes.oids.now


def make(route: Route, rows: Sequence[Row], sizes: RequestSizes) -> Replay | None:
    """The replay of a route that was just followed to these rows; None for an unusual response."""
    oids = tuple(name for name, _ in rows)
    key = (hash(oids), route.get, route.ranges, sizes.rows.now, sizes.oids.now)
    cached = _replays.get(key)
    if cached is not None:
        return cached

    expected = len(route.get) + sum(step.rows for step in route.ranges)
    names = [codec.oid_element(name) for name in oids]
    is_usual = oids[: len(route.get)] == route.get and len(oids) == expected
    if not is_usual or any(len(name) > _MAX_NAME for name in names):
        return None

    walks = tuple(_walks(route, oids, names, sizes.rows.now))
    gets = tuple(_gets(route.get, names, min(sizes.limit, sizes.oids.now)))
    made = Replay((*walks, *gets), len(walks), hash(oids), sizes.rows.now, sizes.oids.now)
    if len(_replays) >= _MAX_REPLAYS:
        _replays.clear()
    _replays[key] = made
    return made


def _walks(
    route: Route, oids: Sequence[str], names: Sequence[bytes], page: int
) -> Iterator[PreparedRequest]:
    """The GETBULKs of all ranges, each of at most `page` rows."""
    at = len(route.get)
    for step in route.ranges:
        end = at + step.rows
        cursor = step.cursor
        left = step.rows + step.ends
        while left > 0:
            repetitions = min(left, page)
            stop = min(at + repetitions, end)
            shows_end = at + repetitions > end
            yield PreparedRequest(
                *codec.prepared(codec.GET_BULK, repetitions, (cursor,)),
                names=b"".join(names[at:stop]),
                rows=stop - at,
                root=codec.oid_element(step.root)[2:] if shows_end else b"",
                size=repetitions,
            )
            left -= repetitions
            at = stop
            cursor = oids[at - 1]


def _gets(oids: Sequence[str], names: Sequence[bytes], most: int) -> Iterator[PreparedRequest]:
    """The GETs, each of at most `most` OIDs."""
    for at in range(0, len(oids), most):
        some = oids[at : at + most]
        yield PreparedRequest(
            *codec.prepared(codec.GET, 0, some),
            names=b"".join(names[at : at + len(some)]),
            rows=len(some),
            root=b"",
            size=len(some),
        )
