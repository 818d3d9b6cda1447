"""The installed sinks, for the command line and the API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from poller.plugins import Broken
from poller.sinks import registry


@dataclass(frozen=True, slots=True)
class InstalledSink:
    """A sink that can be used. `used`: the workers of this machine write to it."""

    name: str
    distribution: str
    version: str
    api_version: int
    used: bool
    state: str
    deprecated: str


@dataclass(frozen=True, slots=True)
class InstalledSinks:
    """The usable sinks, the broken ones, and those in use that cannot be used."""

    sinks: Sequence[InstalledSink]
    broken: Sequence[Broken]
    unusable: Sequence[str]


def read(used: Collection[str]) -> InstalledSinks:
    """Return the installed sinks; `used` are those of the settings."""
    found = registry.survey()
    sinks = []
    for name, admitted in found.plugins.items():
        distribution, _, version = found.distributions[name].rpartition(" ")
        sink = InstalledSink(
            name=name,
            distribution=distribution,
            version=version,
            api_version=admitted.api_version,
            used=name in used,
            state="deprecated API" if admitted.notice else "ok",
            deprecated=admitted.notice,
        )
        sinks.append(sink)
    unusable = [name for name in used if name not in found.plugins]
    return InstalledSinks(sinks, found.broken, unusable)
