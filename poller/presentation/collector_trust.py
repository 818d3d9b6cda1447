"""The trust in each collector, from the crash records of the cluster, as the command line and the
collectors page show it.
"""

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

DECLARED_REASON = "declared: by its author or in isolated_collectors"


@dataclass(frozen=True)
class CollectorTrust:
    """The crash records by release; None when Redis does not answer."""

    records: Mapping[Release, Record] | None
    declared: frozenset[str]  # the setting isolated_collectors

    def describe(self, collector: Collector, registry: Registry) -> dict[str, Any]:
        """State, since when, crashes and reason of an installed collector, as JSON fields."""
        if self.records is None:
            reason = "Redis does not answer"
            unknown = dict.fromkeys(("state", "since", "since_seconds", "crashes"))
            return {**unknown, "reason": reason}

        release = Release(collector.name, registry.distributions[collector.name])
        record = self.records.get(release, Record())
        fields = describe_record(record)

        if record.trust is Trust.OK and self._is_declared(collector):
            fields["state"] = Trust.ISOLATED.value
            fields["reason"] = record.reason or DECLARED_REASON
        return fields

    def recorded_releases(self) -> list[dict[str, Any]]:
        """All releases that have a crash record, also those that are not installed here."""
        records = self.records or {}
        releases = sorted(records, key=lambda release: release.field)

        items = []
        for release in releases:
            names = {"collector": release.collector, "distribution": release.distribution}
            items.append(names | describe_record(records[release]))
        return items

    def _is_declared(self, collector: Collector) -> bool:
        return getattr(collector, "isolated", False) or collector.name in self.declared


def declared(services: Services) -> frozenset[str]:
    """The collectors that the settings isolate."""
    return frozenset(services.settings.isolated_collectors)


def read(services: Services) -> CollectorTrust:
    """Read the crash records of the cluster. Raises StoreError."""
    records = quarantine_records.read(services.redis, services.keys)
    return CollectorTrust(records, declared(services))


def describe_record(record: Record) -> dict[str, Any]:
    """A crash record as JSON fields; `since` is None for a collector that runs normally."""
    since = None
    since_seconds = None
    if record.since_ms:
        since = datetime.fromtimestamp(record.since_ms / 1000, UTC)
        age_ms = event_publisher.now_ms() - record.since_ms
        since_seconds = max(0, age_ms) // 1000

    return {
        "state": record.trust.value,
        "since": since,
        "since_seconds": since_seconds,
        "crashes": len(record.crashes_ms),
        "reason": record.reason,
    }
