"""The collectors of a small cluster: a good one, one in quarantine, and a broken plugin."""

from __future__ import annotations

import dataclasses

from poller.collectors import registry
from poller.domain.failures.quarantine import Record
from poller.domain.record.overview import Worker
from poller.plugins import Broken
from poller.presentation.collector_trust import CollectorTrust
from poller.state.cluster.quarantine_records import Release
from poller.web.pages.cluster.collectors_page import CollectorsStatus

NOW = 1_800_000_000_000


def status(
    import_error: str = "ImportError: no vendor library", crash: str = "it ended its process"
) -> CollectorsStatus:
    """`snmp` is well, `routeros` is quarantined because of `crash`, `olt` cannot be imported."""
    loaded = registry.load()
    collectors = {name: loaded.collectors[name] for name in ("routeros", "snmp")}
    broken = Broken("olt", "acme-olt 0.3", import_error, "pip install vendor")
    installed = dataclasses.replace(loaded, collectors=collectors, broken=(broken,))

    record = Record(crashes_ms=(NOW, NOW, NOW), isolated_ms=NOW, quarantined_ms=NOW, reason=crash)
    records = {Release("routeros", loaded.distributions["routeros"]): record}

    both = worker("worker1@a", collectors={"snmp": "poller 1", "routeros": "poller 1"})
    one = worker("worker2@b", collectors={"snmp": "poller 1"}, broken={"dsl": "other API version"})
    return CollectorsStatus(installed, CollectorTrust(records, frozenset()), (both, one))


def worker(name: str, **fields: object) -> Worker:
    return Worker(
        name=name,
        seen_ms=NOW,
        started_ms=NOW,
        polls=0,
        in_flight=0,
        rss_bytes=0,
        **fields,  # type: ignore[arg-type]
    )


STATUS = status()
