"""The trust in a collector, from the incidents on record. This module stops no collector.

`ok` runs in the worker process, `isolated` in a separate process, `quarantined` nowhere until an
operator releases it.
"""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from poller.domain.failures.outcome import clean

#: A worker that died twice while it polled one target was hardly killed from outside both times.
SUSPICIONS = 2
_MAX_STORED = 1_000


class Trust(enum.StrEnum):
    OK = "ok"
    ISOLATED = "isolated"
    QUARANTINED = "quarantined"


class Cause(enum.StrEnum):
    """The cause of an incident. Only a crash counts towards a quarantine."""

    CRASH = "crash"  # the collector's process ended by a fault, an exit or a standstill
    SUSPICION = "suspicion"  # a worker ended while it ran the collector; maybe killed from outside
    STUCK = "stuck"  # threads of the collector hang; a separate process can be ended with them


@dataclass(frozen=True, slots=True)
class Incident:
    at_ms: int
    cause: Cause
    text: str
    target_id: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """A collector is quarantined after `crashes` crashes within `window_ms`."""

    crashes: int = 3
    window_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Record:
    """The incidents of one release of a collector. Redis stores the field names."""

    crashes_ms: tuple[int, ...] = ()  # within the window before the last crash
    suspicions: tuple[tuple[int, int], ...] = ()  # instant and target id of each
    isolated_ms: int = 0  # since when; 0 = not isolated
    quarantined_ms: int = 0  # since when; 0 = not quarantined
    reason: str = ""  # text of the last incident

    @property
    def trust(self) -> Trust:
        if self.quarantined_ms:
            return Trust.QUARANTINED
        return Trust.ISOLATED if self.isolated_ms else Trust.OK

    @property
    def since_ms(self) -> int:
        """Since when the collector is quarantined or isolated; 0: neither."""
        return self.quarantined_ms or self.isolated_ms

    def pack(self) -> str:
        return json.dumps(asdict(self))


def record(before: Record, incident: Incident, rules: Rules) -> Record:
    """Return the record after one more incident."""
    since_ms = incident.at_ms - rules.window_ms
    after = replace(before, reason=clean(incident.text))

    if incident.cause is Cause.SUSPICION:
        recent = [each for each in before.suspicions if each[0] > since_ms]
        suspicion = (incident.at_ms, incident.target_id)
        after = replace(after, suspicions=(*recent[-_MAX_STORED:], suspicion))
        suspected = [target_id for _, target_id in after.suspicions]
        if suspected.count(incident.target_id) < SUSPICIONS:
            return after
    if incident.cause is Cause.CRASH:
        recent_ms = [at_ms for at_ms in before.crashes_ms if at_ms > since_ms]
        after = replace(after, crashes_ms=(*recent_ms[-_MAX_STORED:], incident.at_ms))

    after = replace(after, isolated_ms=before.isolated_ms or incident.at_ms)
    if len(after.crashes_ms) >= rules.crashes and not before.quarantined_ms:
        after = replace(after, quarantined_ms=incident.at_ms)
    return after


def unpack(text: str) -> Record:
    """Return the record of a stored text; an empty record for a text that is not one."""
    try:
        fields: dict[str, Any] = json.loads(text)
        suspicions = [(int(at_ms), int(target_id)) for at_ms, target_id in fields["suspicions"]]
        return Record(
            crashes_ms=tuple(map(int, fields["crashes_ms"])),
            suspicions=tuple(suspicions),
            isolated_ms=int(fields["isolated_ms"]),
            quarantined_ms=int(fields["quarantined_ms"]),
            reason=clean(str(fields["reason"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Record()
