"""Can a collector be trusted with our process? What its crashes so far say; nothing is stopped here.

`ok` runs like any other, `isolated` in a process of its own, `quarantined` nowhere until a person releases it.
"""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from poller.domain.failures.outcome import clean

#: A worker that died twice while the same target's code ran was hardly killed from outside both times.
SUSPICIONS = 2
_MOST_KEPT = 1_000


class Trust(enum.StrEnum):
    OK = "ok"
    ISOLATED = "isolated"
    QUARANTINED = "quarantined"


class Cause(enum.StrEnum):
    """What made us doubt it. Only a crash that nobody else can have caused counts towards a quarantine."""

    CRASH = "crash"  # its process ended by its own doing: a fault, an exit, standing still
    SUSPICION = (
        "suspicion"  # a worker ended while its code ran; it may have been killed from outside
    )
    STUCK = "stuck"  # its threads hang: a process of its own can be ended with them


@dataclass(frozen=True, slots=True)
class Doubt:
    at_ms: int
    cause: Cause
    text: str
    target_id: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """Quarantined after so many crashes within that time."""

    crashes: int = 3
    window_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one collector of one release."""

    crashes_ms: tuple[int, ...] = ()  # within the window before the last one
    suspicions: tuple[tuple[int, int], ...] = ()  # instant and target of each
    isolated_ms: int = 0  # since when; 0 = it is not
    quarantined_ms: int = 0
    reason: str = ""  # the last one

    @property
    def trust(self) -> Trust:
        if self.quarantined_ms:
            return Trust.QUARANTINED
        return Trust.ISOLATED if self.isolated_ms else Trust.OK

    @property
    def since_ms(self) -> int:
        return self.quarantined_ms or self.isolated_ms

    def pack(self) -> str:
        return json.dumps(asdict(self))


def record(before: Record, doubt: Doubt, rules: Rules) -> Record:
    """The record with one doubt more."""
    since_ms = doubt.at_ms - rules.window_ms
    after = replace(before, reason=clean(doubt.text))
    if doubt.cause is Cause.SUSPICION:
        recent = tuple(each for each in before.suspicions if each[0] > since_ms)[-_MOST_KEPT:]
        after = replace(after, suspicions=(*recent, (doubt.at_ms, doubt.target_id)))
        if sum(target_id == doubt.target_id for _, target_id in after.suspicions) < SUSPICIONS:
            return after
    if doubt.cause is Cause.CRASH:
        recent_ms = tuple(at_ms for at_ms in before.crashes_ms if at_ms > since_ms)[-_MOST_KEPT:]
        after = replace(after, crashes_ms=(*recent_ms, doubt.at_ms))
    after = replace(after, isolated_ms=before.isolated_ms or doubt.at_ms)
    if len(after.crashes_ms) >= rules.crashes and not before.quarantined_ms:
        after = replace(after, quarantined_ms=doubt.at_ms)
    return after


def unpack(text: str) -> Record:
    """The stored text back to a record; one that is not ours counts as none."""
    try:
        fields: dict[str, Any] = json.loads(text)
        return Record(
            crashes_ms=tuple(map(int, fields["crashes_ms"])),
            suspicions=tuple(
                (int(at_ms), int(target_id)) for at_ms, target_id in fields["suspicions"]
            ),
            isolated_ms=int(fields["isolated_ms"]),
            quarantined_ms=int(fields["quarantined_ms"]),
            reason=clean(str(fields["reason"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Record()
