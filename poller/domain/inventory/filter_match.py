"""A filter applied to one target in memory. SQL has its own form, see db/inventory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from poller import errors
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter, wildcard_expression


class TargetFacts(Protocol):
    """The facts that a filter looks at: a PollTarget, or the like."""

    @property
    def device(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def site(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def collector(self) -> str: ...
    @property
    def options(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device without a target. Filters with keys of targets do not match it."""

    device: str
    address: str = ""
    site: str = ""
    tags: Sequence[str] = ()
    collector: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


class FilterMatch:
    """Decides whether a target matches a filter. Raises InvalidInput for states and credentials."""

    def __init__(self, wanted: TargetFilter) -> None:
        if wanted.needs_status:
            key = "state" if wanted.states else "code"
            raise errors.InvalidInput(
                f"{key}: states change with every poll, so a filter for the future cannot have it",
                hint="site, tag, collector, name, address and option can be used",
            )
        if wanted.credentials:
            raise errors.InvalidInput(
                "credential: a filter for the future cannot have it",
                hint="site, tag, collector, name, address and option can be used",
            )
        self._wanted = wanted
        self._names = [re.compile(wildcard_expression(name)) for name in wanted.names]
        self._addresses = AddressMatch(wanted.addresses) if wanted.addresses else None

    def accepts(self, facts: TargetFacts) -> bool:
        """Whether every key of the filter fits the target."""
        wanted = self._wanted
        if wanted.sites and facts.site not in wanted.sites:
            return False
        if wanted.collectors and facts.collector not in wanted.collectors:
            return False
        if not set(wanted.tags).issubset(facts.tags):
            return False
        if self._names and not any(name.fullmatch(facts.device) for name in self._names):
            return False
        if self._addresses is not None and not self._addresses.accepts(facts.address):
            return False
        return all(_has_option(facts.options, option) for option in wanted.options)


def _has_option(options: Mapping[str, Any], wanted: str) -> bool:
    name, _, value = wanted.partition("=")
    if name not in options:
        return False
    stored = options[name]
    return value in (stored, json.dumps(stored))
