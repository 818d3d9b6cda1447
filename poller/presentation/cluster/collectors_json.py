"""Collectors as JSON, schema `poller.collectors/1`. Fields may be added, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from poller.collectors import descriptions
from poller.presentation.record.instants import Instant

if TYPE_CHECKING:
    from poller.collectors.api import Collector
    from poller.collectors.registry import Registry
    from poller.domain.record.overview import Worker
    from poller.presentation.collector_trust import CollectorTrust

SCHEMA = "poller.collectors/1"


class CollectorOption(BaseModel):
    """One option of a target of a collector."""

    name: str
    type: str = Field(description="In words, such as `integer 1 to 65535`.")
    default: Any = Field(description="Null for a required option.")
    required: bool
    description: str


class CollectorItem(BaseModel):
    """An installed collector: its origin, options, credentials and health."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    distribution: str
    version: str
    api_version: int
    api_versions: list[int]
    deprecated: str = Field(description="Why its version of the contract will end.")
    abilities: list[str]
    cost: float
    credentials: list[str] = Field(description="The kinds of credentials that it takes.")
    options: list[CollectorOption]
    options_schema: dict[str, Any] = Field(
        alias="schema", description="The JSON schema of its options, with their defaults."
    )
    state: str | None = Field(description="ok, isolated or quarantined; null if not known.")
    since: Instant | None = Field(description="The beginning of the isolation or quarantine.")
    since_seconds: int | None
    crashes: int | None = Field(description="Of the last hour; null if not known.")
    reason: str
    workers: int | None = Field(description="Running workers that have it; null if not known.")


class BrokenCollector(BaseModel):
    """An installed package whose collector cannot be used."""

    name: str
    distribution: str
    reason: str
    hint: str
    state: str


def fields(
    collector: Collector,
    registry: Registry,
    trust: CollectorTrust,
    workers: Sequence[Worker] | None,
) -> dict[str, Any]:
    """Return the fields of one collector; without workers their number is None."""
    having = None
    if workers is not None:
        having = sum(collector.name in worker.collectors for worker in workers)
    return {
        **descriptions.describe(collector, registry),
        **trust.describe(collector, registry),
        "workers": having,
        "schema": descriptions.schema(collector),
    }
