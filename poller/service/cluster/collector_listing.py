"""The installed collectors and their health, for the command line and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.domain.record.overview import Worker
from poller.presentation import collector_trust
from poller.presentation.cluster import collectors_json
from poller.presentation.collector_trust import CollectorTrust
from poller.state.cluster import worker_registry

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.registry import Registry


@dataclass(frozen=True, slots=True)
class Installed:
    """The collectors of this process, their crash records, and the running workers.

    Without Redis the records and the workers are not known.
    """

    registry: Registry
    trust: CollectorTrust
    workers: Sequence[Worker] | None
    redis_error: str = ""

    def items(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return the JSON fields of all collectors, or of one. Raises CollectorMissing."""
        registry = self.registry
        chosen = registry.collectors.values() if name is None else [registry.get(name)]
        return [collectors_json.fields(each, registry, self.trust, self.workers) for each in chosen]


def read(services: Services) -> Installed:
    """Return the installed collectors. Redis may be away."""
    registry = services.registry
    try:
        trust = collector_trust.read(services)
        now_ms = services.board.now_ms()
        workers = worker_registry.living(services.redis, services.keys, now_ms)
    except errors.StoreError as error:
        unknown = CollectorTrust(None, collector_trust.declared(services))
        return Installed(registry, unknown, None, error.message)
    return Installed(registry, trust, workers)
