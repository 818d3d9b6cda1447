"""A poll of a scrape on its way to a worker, and its result on the way back, without secrets.

Pages send test polls and discoveries the same way.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack

#: The largest result, in characters of Redis.
MOST_CHARACTERS = 8_000_000
QUEUE = "scrape"
#: A worker ends its poll this long before the scrape has to be answered.
ANSWER_MS = 200
#: Whole numbers from here on are rounded when they become floats.
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class ScrapePoll:
    """One poll of an address. `credential_id` names a credential of the vault.

    With `discovers` the collector suggests targets and reads nothing else.
    """

    collector: str
    address: str
    options: Mapping[str, Any]
    credential_id: int | None = None
    is_public: bool = False  # the community `public`, as in the files of snmp_exporter
    requires: Mapping[str, str] = field(default_factory=dict)
    discovers: bool = False

    @property
    def name(self) -> str:
        """The same for all who ask for the same poll."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    @property
    def queue(self) -> str:
        """The queue of workers that have the required tags."""
        return queue_of(self.requires)

    def to_json(self) -> str:
        """Return the canonical text, which workers of an earlier release read if it can be."""
        fields = asdict(self)
        if not self.discovers:
            del fields["discovers"]
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ScrapePoll:
        """Return the poll of a text."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """A target that a collector suggests, with what the device says about itself."""

    options: Mapping[str, Any]
    reason: str
    name: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScrapeResult:
    """The result of a scrape's poll. `failed` has part and error of each table not read."""

    result: Result
    code: str = ""
    message: str = ""
    failed: Sequence[tuple[str, str]] = ()
    sent: int = 0
    retried: int = 0
    duration_ms: int = 0
    readings: ReadingSet | None = None
    limit_ms: int = 0  # the time that the poll had
    found: Sequence[FoundTarget] = ()  # of a discovery

    def was_cut_before(self, time_ms: int) -> bool:
        """Whether nothing was read in a time that is shorter than this one."""
        is_late = self.readings is None and self.code == error_codes.TIMEOUT
        return is_late and self.limit_ms + ANSWER_MS < time_ms

    def to_text(self) -> str:
        """Return the text for Redis: numbers and shapes packed."""
        head: list[Any] = [
            self.result.value,
            self.code,
            self.message,
            list(self.failed),
            self.sent,
            self.retried,
            self.duration_ms,
            self.limit_ms,
        ]
        if self.found:
            head.append([asdict(each) for each in self.found])
        parts = [json.dumps(head)]
        if self.readings is not None:
            values = zlib.compress(pack([_exact(each) for each in self.readings.values]), 1)
            parts += [_text(self.readings.series.packed), _text(values)]
        return "\n".join(parts)

    @classmethod
    def from_text(cls, text: str) -> ScrapeResult:
        """Return the result of a text."""
        head, *packed = text.split("\n")
        result, code, message, failed, sent, retried, duration_ms, limit_ms, *more = json.loads(
            head
        )
        readings = None
        if packed:
            shape = SeriesSet.from_packed(base64.b64decode(packed[0]))
            readings = ReadingSet(shape, unpack(zlib.decompress(base64.b64decode(packed[1]))))
        parts = [(part, error) for part, error in failed]
        found = [FoundTarget(**each) for each in (more[0] if more else ())]
        return cls(
            Result(result),
            code,
            message,
            parts,
            sent,
            retried,
            duration_ms,
            readings,
            limit_ms,
            found,
        )


def queue_of(requires: Mapping[str, str]) -> str:
    """Return the queue of scrapes for workers with these tags: `scrape`, `scrape;site=ams`."""
    tags = "".join(f";{key}={value}" for key, value in sorted(requires.items()))
    return QUEUE + tags


def _exact(value: float) -> float:
    """Return a Counter64 modulo 2**53 as snmp_exporter does, while it is still a whole number."""
    return value % EXACT if isinstance(value, int) and value >= EXACT else value


def _text(packed: bytes) -> str:
    return base64.b64encode(packed).decode()
