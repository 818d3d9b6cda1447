"""Collectors of a small cluster: one that is well, one in quarantine, one that cannot be imported."""

from __future__ import annotations

import dataclasses

from poller.collectors import registry
from poller.domain.failures.quarantine import Record
from poller.domain.record.overview import Worker
from poller.plugins import Broken
from poller.presentation.collector_trust import CollectorTrust
from poller.state.cluster.quarantine_records import Release
from poller.web.pages.collectors_page import Found

NOW = 1_800_000_000_000


def found(
    reason: str = "ImportError: no vendor library", crash: str = "it ended its process"
) -> Found:
    loaded = registry.load()
    kept = {name: each for name, each in loaded.collectors.items() if name in ("snmp", "routeros")}
    installed = dataclasses.replace(
        loaded,
        collectors=kept,
        broken=(Broken("olt", "acme-olt 0.3", reason, "pip install vendor"),),
    )
    crashed = Record(crashes_ms=(NOW, NOW, NOW), isolated_ms=NOW, quarantined_ms=NOW, reason=crash)
    records = {Release("routeros", loaded.distributions["routeros"]): crashed}
    workers = (
        Worker(
            "worker1@a", NOW, NOW, 0, 0, 0, collectors={"snmp": "poller 1", "routeros": "poller 1"}
        ),
        Worker(
            "worker2@b",
            NOW,
            NOW,
            0,
            0,
            0,
            collectors={"snmp": "poller 1"},
            broken={"dsl": "other API version"},
        ),
    )
    return Found(installed, CollectorTrust(records, frozenset()), workers)


FOUND = found()
