"""A device made of a dictionary, which can change between polls as real devices do."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors.snmp import oid
from poller.collectors.snmp.engines import engine_protocol
from poller.collectors.snmp.engines.engine_protocol import (
    ErrorStatus,
    NoReply,
    Page,
    PreparedRequest,
    Retry,
    Row,
    Silence,
)
from poller.collectors.snmp.wire import codec, response_values
from poller.collectors.snmp.wire.value_types import Value
from tests.unit.collectors import snmp_agent

UPTIME, LAST_CHANGE, NUMBER = "1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.31.1.5.0", "1.3.6.1.2.1.2.1.0"
TABLE, X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
TEXTS = {
    f"{TABLE}.2": "descr",
    f"{TABLE}.6": "mac",
    f"{X_TABLE}.1": "name",
    f"{X_TABLE}.18": "alias",
}
NUMBERS = [
    *(f"{TABLE}.{n}" for n in (1, 3, 4, 5, *range(7, 22))),
    *(f"{X_TABLE}.{n}" for n in (*range(2, 18), 19)),
]


@dataclass
class Device:
    """Interfaces by index. `clock` is the device's own, in seconds since its creation."""

    interfaces: dict[int, str] = field(default_factory=dict)
    clock: float = 1100.0
    booted: float = 0.0
    changed: float = 0.0  # ifTableLastChange, on the same clock
    has_last_change: bool = True  # the device has ifTableLastChange
    object_id: str = ""

    def values(self) -> dict[str, Value]:
        ticks = int(self.clock * 100)
        rows: dict[str, Value] = {
            UPTIME: int((self.clock - self.booted) * 100),
            NUMBER: len(self.interfaces),
        }
        if self.has_last_change:
            rows[LAST_CHANGE] = int((self.changed - self.booted) * 100)
        if self.object_id:
            rows |= {"1.3.6.1.2.1.1.1.0": b"a device", "1.3.6.1.2.1.1.2.0": self.object_id}
        for index, name in self.interfaces.items():
            rows |= {
                f"{column}.{index}": f"{what} {name}".encode() for column, what in TEXTS.items()
            }
            rows |= {f"{column}.{index}": ticks * index + n for n, column in enumerate(NUMBERS)}
            rows[f"{TABLE}.1.{index}"] = index
            rows[f"{TABLE}.3.{index}"] = 6
        return rows

    def add(self, index: int, name: str) -> None:
        self.interfaces[index] = name
        self.changed = self.clock

    def remove(self, index: int) -> None:
        del self.interfaces[index]
        self.changed = self.clock

    def reboot(self) -> None:
        """Restart, which takes five seconds."""
        self.clock += 5
        self.booted = self.changed = self.clock


class Link:
    """Records the requested and the returned OIDs. `rows` and `oids` limit a response."""

    codec_only = False
    received = 0
    silence = Silence()
    exact = False

    def __init__(
        self, values: Mapping[str, Value], rows: int = 1000, oids: int = 1000, bulk: bool = True
    ) -> None:
        self._values = values
        self._sorted: list[Row] = sorted(values.items(), key=lambda row: oid.parse(row[0]))
        self._keys = [oid.parse(name) for name, _ in self._sorted]
        self._most_rows, self._most_oids = (rows, oids) if bulk else (1, oids)
        self._bulk = bulk
        self.max_get_oids = 20 if bulk else 1
        self.requested: list[str] = []
        #: Requests, and variables in their responses.
        self.requests = 0
        self.varbinds = 0
        self.returned: set[str] = set()
        #: Subtrees that do not answer.
        self.silent: tuple[str, ...] = ()
        self.multi_get_next = True
        #: Prepared requests are understood, as by a link of SNMP v2c.
        self.replays = bulk
        self.replayed = 0

    def send_prepared(self, request: PreparedRequest) -> int:
        self.replayed += 1
        return self.replayed

    async def receive_prepared(
        self, pending: Mapping[int, PreparedRequest], wait_s: float
    ) -> tuple[int, list[Value] | None]:
        """Answer the oldest of the pending requests by a datagram in BER."""
        number, request = next(iter(pending.items()))
        pdu = request.before_id + bytes(4) + request.after_id
        asked = snmp_agent.parse_pdu(pdu)
        if asked.kind == snmp_agent.GET_BULK:
            await self.page(asked.oids[0], "", asked.repetitions, wait_s)
            start = bisect.bisect_right(self._keys, oid.parse(asked.oids[0]))
            rows = self._sorted[start : start + min(asked.repetitions, self._most_rows)]
        else:
            rows = list(await self.get(asked.oids, wait_s))
        data = snmp_agent.response(b"it", bytes(4), [_encoded(row) for row in rows])
        head = codec.integer(1) + codec.element(codec.OCTETS, b"it")
        values = response_values.read_values(
            bytearray(data), len(data), head, request.names, request.rows, request.root
        )
        return number, values

    async def handshake(self, retry: Retry) -> None: ...

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        self._receive(cursor)
        self.requests += 1
        start = bisect.bisect_right(self._keys, oid.parse(cursor))
        after = self._sorted[start : start + min(repetitions, self._most_rows)]
        self.varbinds += len(after)
        within = [row for row in after if oid.covers(root, row[0])]
        self.returned.update(name for name, _ in after)
        if not after and not self._bulk:
            raise ErrorStatus(engine_protocol.NO_SUCH_NAME)
        return Page(within, ended=len(within) < len(after) or not after)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        self.requests += 1
        self.varbinds += len(oids)
        for name in oids:
            self._receive(name)
        if len(oids) > self._most_oids:
            raise ErrorStatus(engine_protocol.TOO_BIG)
        if not self._bulk and any(name not in self._values for name in oids):
            raise ErrorStatus(engine_protocol.NO_SUCH_NAME)
        self.returned.update(oids)
        return [(name, self._values[name]) for name in oids if name in self._values]

    async def next_oids(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        starts = [bisect.bisect_right(self._keys, oid.parse(name)) for name in oids]
        self.requests += 1
        self.varbinds += len(oids)
        for name in oids:
            self._receive(name)
        if not self.multi_get_next:
            raise NoReply("silence")
        if not self._bulk and max(starts) == len(self._sorted):
            raise ErrorStatus(engine_protocol.NO_SUCH_NAME)
        return [
            self._sorted[start][0] if start < len(self._sorted) else ""
            for start in starts[: self._most_oids]
        ]

    def _receive(self, name: str) -> None:
        self.requested.append(name)
        if any(oid.covers(root, name) for root in self.silent):
            raise NoReply("silence")

    def close(self) -> None: ...


def _encoded(row: Row) -> tuple[bytes, bytes]:
    """The name and value of a row in BER."""
    name, value = row
    if isinstance(value, int):
        encoded = snmp_agent.integer(value, 0x02 if value < 0 else 0x46)
    elif isinstance(value, bytes):
        encoded = snmp_agent.octets(value)
    else:
        encoded = snmp_agent.oid(str(value))
    return snmp_agent.oid(name), encoded
