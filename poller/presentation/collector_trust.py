"""How far is each collector trusted? What its crashes so far say, for the command line and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from poller import event_publisher
from poller.domain.failures.quarantine import Record, Trust
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.api import Collector
    from poller.collectors.registry import Registry

DECLARED = "declared: by its author or in isolated_collectors"


@dataclass(frozen=True)
class CollectorTrust:
    """What the cluster knows; None when it cannot be asked."""

    records: Mapping[Release, Record] | None
    declared: frozenset[str]

    def describe(self, collector: Collector, registry: Registry) -> dict[str, Any]:
        """For an installed collector: state, since when, crashes and the reason."""
        if self.records is None:
            return {
                "state": None,
                "since": None,
                "crashes": None,
                "reason": "Redis does not answer",
            }
        found = self.records.get(
            Release(collector.name, registry.distributions[collector.name]), Record()
        )
        if found.trust is Trust.OK and (
            getattr(collector, "isolated", False) or collector.name in self.declared
        ):
            return {
                **describe_record(found),
                "state": Trust.ISOLATED.value,
                "reason": found.reason or DECLARED,
            }
        return describe_record(found)

    def recorded_releases(self) -> list[dict[str, Any]]:
        """Everything that is held against any release, also against one that is not installed here."""
        return [
            {
                "collector": release.collector,
                "distribution": release.distribution,
                **describe_record(found),
            }
            for release, found in sorted(
                (self.records or {}).items(), key=lambda pair: pair[0].field
            )
        ]


def declared(services: Services) -> frozenset[str]:
    return frozenset(services.settings.isolated_collectors)


def read(services: Services) -> CollectorTrust:
    """Raises StoreError."""
    return CollectorTrust(
        quarantine_records.read(services.redis, services.keys), declared(services)
    )


def describe_record(found: Record) -> dict[str, Any]:
    since = datetime.fromtimestamp(found.since_ms / 1000, UTC) if found.since_ms else None
    seconds = max(0, event_publisher.now_ms() - found.since_ms) // 1000 if since else None
    return {
        "state": found.trust.value,
        "since": since,
        "since_seconds": seconds,
        "crashes": len(found.crashes_ms),
        "reason": found.reason,
    }
