"""What a route was told of an alert, from the rows of `alert_tellings`."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from poller.domain.alerts.flow.sign import AHEAD_MS

#: Rounds of one kind that are read with their keys; of the later ones only the newest.
FIRST_ROUNDS = 20


class TellingKind(enum.StrEnum):
    """The tellings of an alert."""

    FIRING = "firing"
    ESCALATION = "escalation"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Telling:
    """One alert in one notice of one route. `key` is that of the notice, "" if nobody was told."""

    alert_id: int
    route: str
    kind: TellingKind
    round: int  # counts tellings of one kind from 0
    told_ms: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """All that one route was told of one alert."""

    firings: int = 0
    first_ms: int = 0
    last_ms: int = 0
    is_escalated: bool = False
    is_resolved: bool = False
    keys: tuple[str, ...] = ()  # of the notices, the oldest first


NOTHING = Told()


def by_clock(
    tellings: Iterable[Telling], fired_ms: Mapping[int, int], now_ms: int
) -> Iterable[Telling]:
    """Yield the tellings; those that are still to come, by a clock that was set back since, were
    made when their alert fired. Otherwise nobody would be told again for as long.
    """
    for telling in tellings:
        if telling.told_ms <= now_ms + AHEAD_MS:
            yield telling
        else:
            yield replace(telling, told_ms=min(fired_ms.get(telling.alert_id, now_ms), now_ms))


def summed(tellings: Iterable[Telling]) -> Mapping[int, dict[str, Told]]:
    """Return alert id -> route -> what the route was told."""
    rows: dict[tuple[int, str], list[Telling]] = {}
    for telling in tellings:
        rows.setdefault((telling.alert_id, telling.route), []).append(telling)
    found: dict[int, dict[str, Told]] = {}
    for (alert_id, route), of_route in rows.items():
        found.setdefault(alert_id, {})[route] = _told(of_route)
    return found


def _told(tellings: list[Telling]) -> Told:
    ordered = sorted(tellings, key=lambda telling: telling.told_ms)
    firings = [each for each in ordered if each.kind is TellingKind.FIRING]
    kinds = {each.kind for each in ordered}
    return Told(
        firings=1 + max((each.round for each in firings), default=-1),
        first_ms=firings[0].told_ms if firings else 0,
        last_ms=firings[-1].told_ms if firings else 0,
        is_escalated=TellingKind.ESCALATION in kinds,
        is_resolved=TellingKind.RESOLVED in kinds,
        keys=tuple(dict.fromkeys(each.key for each in ordered if each.key)),
    )
