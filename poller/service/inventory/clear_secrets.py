"""Targets whose secrets cross the network in clear, as their collectors declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.collectors.api import SendsClearSecrets
from poller.db.inventory import filter_conditions
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Targets of one kind that are counted; more are not told apart.
MOST = 10_000


@dataclass(frozen=True, slots=True)
class ClearSecrets:
    """The number of targets that send their secret in clear, and the filter that shows them."""

    count: int  # at most MOST
    where: str


def find(services: Services) -> list[ClearSecrets]:
    """Return the enabled targets that send their secrets in clear, by filter. Raises StoreError."""
    found = []
    for wanted in _filters(services):
        count = filter_conditions.count_enabled(services.engine, wanted, MOST)
        if count:
            found.append(ClearSecrets(count, target_filter.text(wanted)))
    return found


def _filters(services: Services) -> Iterator[TargetFilter]:
    for name, collector in services.registry.collectors.items():
        if isinstance(collector, SendsClearSecrets):
            for option, value in collector.clear_secrets.items():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield TargetFilter(collectors=(name,), options=(f"{option}={text}",))
