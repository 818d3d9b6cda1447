"""The six numbers of the overview: each is a link to what it counts, and none denies the sentence.

While nothing is polled, the age of data says nothing about devices: the numbers of punctuality are
then dashes, and their notes say why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.record.overview import Overview, State
from poller.presentation import formatting
from poller.presentation.cluster import fleet_capacity
from poller.presentation.health import Punctuality, Tone
from poller.web.pages.alerts import alert_tile
from poller.web.pages.fleet.live_table import Shown


@dataclass(frozen=True, slots=True)
class Tile:
    """A number, its title and its link; the note has a cell of its own."""

    id: str
    title: str
    url: str
    note: str


TILES: Sequence[Tile] = (
    Tile("up-to-date", "Up to date", "devices?where=state:ok", "up-note"),
    Tile("late", "Late", "devices?sort=last_ok", "late-note"),
    Tile("failing", "Failing", "devices?where=state:failing&sort=worst", "failing-note"),
    Tile("alerts", "Alerts firing", "alerts", "alerts-others"),
    Tile("letters", "Dead letters", "letters", "letters-note"),
    Tile("capacity", "Capacity", "workers", "capacity-note"),
)
_STOPPED = "nothing is polled now"


def texts(shown: Shown, alerts: AlertNumbers | None = None) -> dict[str, str]:
    """Return the texts of the numbers and of their notes."""
    overview = shown.overview
    targets = overview.targets
    failing = overview.states.get(State.FAILING, 0)
    return {
        **_punctuality_texts(overview, shown.punctuality),
        "failing": formatting.exact(failing),
        "failing-note": f"{formatting.share(failing, targets)} of targets",
        "letters": formatting.exact(sum(overview.dead_letters.values())),
        "letters-note": "need a person",
        **alert_tile.texts(alerts),
        **_capacity_texts(shown),
    }


def tones(
    overview: Overview, punctuality: Punctuality, alerts: AlertNumbers | None = None
) -> dict[str, str]:
    """Return the tones of bad numbers; a good number has no colour."""
    found = alert_tile.tones(alerts)
    if punctuality is Punctuality.LATE:
        found["up-to-date"] = found["late"] = str(Tone.LATE)
    failing = overview.states.get(State.FAILING, 0)
    if failing:
        found["failing"] = str(Tone.FAILING)
    if failing > overview.targets / 2 and punctuality is not Punctuality.STOPPED:
        found["up-to-date"] = str(Tone.FAILING)
    if overview.dead_letters:
        found["letters"] = str(Tone.LATE)
    if punctuality is not Punctuality.STOPPED:
        found |= _capacity_tones(overview)
    return found


def up_to_date(overview: Overview) -> int:
    """Targets whose last poll answered and whose next one is not overdue; a lower bound.

    Of the targets that wait for a dark site as many as possible are taken for failing ones.
    """
    failing = overview.states.get(State.FAILING, 0)
    answering = overview.states.get(State.OK, 0) + overview.states.get(State.DEGRADED, 0)
    held = max(0, overview.held - failing)
    return max(0, answering - overview.overdue - overview.unstarted - held)


def _punctuality_texts(overview: Overview, punctuality: Punctuality) -> dict[str, str]:
    if punctuality is Punctuality.STOPPED:
        return {
            "up-to-date": formatting.NOT_MEASURED,
            "up-note": _STOPPED,
            "late": formatting.NOT_MEASURED,
            "late-note": "our own downtime",
        }
    return {
        "up-to-date": formatting.share(up_to_date(overview), overview.targets),
        "up-note": f"of {formatting.counted(overview.targets, 'target')}",
        "late": formatting.exact(overview.overdue),
        "late-note": f"{formatting.share(overview.overdue, overview.targets)} past their slot",
    }


def _capacity_texts(shown: Shown) -> dict[str, str]:
    capacity = fleet_capacity.of_fleet(shown.overview, shown.times)
    if not capacity.maximum_seconds:
        return {"capacity": formatting.NOT_MEASURED, "capacity-note": "no worker runs"}
    share = 100 * capacity.used_seconds / capacity.maximum_seconds
    maximum = formatting.count(round(capacity.maximum_seconds))
    return {"capacity": f"{share:.0f} %", "capacity-note": f"of {maximum} worker-seconds"}


def _capacity_tones(overview: Overview) -> dict[str, str]:
    """The tone of the worst domain, as the table of domains has it."""
    if any(load.due and not load.workers for load in overview.loads):
        return {"capacity": str(Tone.FAILING)}
    if any(load.workers and load.shortage != 0.0 for load in overview.loads):
        return {"capacity": str(Tone.LATE)}
    return {}
