"""The traffic of a month, interface by interface, for the command line and the API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from poller import errors
from poller.db.history.series_of_range import SeriesReader
from poller.db.inventory import targets
from poller.db.inventory.filter_conditions import SelectedTarget
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics import series_identity
from poller.domain.series.series_plan import Range, SeriesPlan
from poller.service import site_limit, target_selection
from poller.service.history import series_listing

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.series.traffic import InterfaceTraffic

#: The rates that the 95th percentile is taken of are those of five minutes.
BUCKET_MS = 300_000
_MONTH = re.compile(r"(\d{4})-(\d{2})")


@dataclass(frozen=True, slots=True)
class Month:
    """A month in UTC; of the present one the part until now."""

    name: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class TargetTraffic:
    """The interfaces of one target, and how their month was read."""

    target: Target
    plan: SeriesPlan
    interfaces: Sequence[InterfaceTraffic]


def month(text: str, now_ms: int) -> Month:
    """Return a month written as `2026-10`. Raises InvalidInput, also for one in the future."""
    found = _MONTH.fullmatch(text.strip())
    year, number = map(int, found.groups()) if found else (0, 0)
    if not (1970 <= year <= 9998 and 1 <= number <= 12):
        raise errors.InvalidInput(f'month: "{text}" is not a month', hint="write 2026-10")
    start_ms = _ms(year, number)
    end_ms = _ms(year + number // 12, number % 12 + 1)
    if start_ms >= now_ms:
        raise errors.InvalidInput(f"month: {text} has not begun", hint="name a month of the past")
    return Month(f"{year:04d}-{number:02d}", start_ms, min(end_ms, now_ms))


def chosen(
    services: Services, actor: Actor, wanted: TargetFilter, device: str = ""
) -> list[SelectedTarget]:
    """Return the targets of a report, by device and name. Raises InvalidInput, NotFound."""
    if device:
        site_limit.visible_device(services, actor, device)
    found = target_selection.select_targets(services, site_limit.limited(actor, wanted))
    return [each for each in found if device in ("", each.device)]


def traffic(
    services: Services, selected: Sequence[SelectedTarget], asked: Month, now_ms: int
) -> Iterator[TargetTraffic]:
    """Yield the traffic of each target that counts octets. Raises StoreError."""
    for each in selected:
        target = targets.by_id(services.engine, each.id)
        if target is None:
            continue
        found = _of_target(services, target, asked, now_ms)
        if found.interfaces:
            yield found


def plan(services: Services, target: Target | None, asked: Month, now_ms: int) -> SeriesPlan:
    """Return how a month is read."""
    whole = Range(asked.start_ms, asked.end_ms, BUCKET_MS)
    return series_listing.plan_of(services, [target] if target else [], whole, now_ms)


def _of_target(services: Services, target: Target, asked: Month, now_ms: int) -> TargetTraffic:
    from poller.domain.series import traffic as figures

    how = plan(services, target, asked, now_ms)
    reader = SeriesReader(services.engine, how, figures.selects)
    tally = figures.TrafficTally(series_identity.identity_option(target.options))
    for part in reader.parts(target):
        tally.add(part, reader.shapes)
    return TargetTraffic(target, how, list(tally.interfaces(asked.end_ms - asked.start_ms)))


def _ms(year: int, number: int) -> int:
    return int(datetime(year, number, 1, tzinfo=UTC).timestamp()) * 1000
