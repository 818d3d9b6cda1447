"""The sinks of the cluster and of this machine, for the command line and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.collectors import descriptions
from poller.domain.inventory import did_you_mean
from poller.domain.record.overview import Overview
from poller.plugins import Broken
from poller.presentation.cluster import sinks_json
from poller.presentation.cluster.sinks_json import InstalledSink, SinkItem, SinkOption
from poller.settings import Settings
from poller.sinks import registry, sink_options

if TYPE_CHECKING:
    from poller.sinks.registry import Admitted


@dataclass(frozen=True, slots=True)
class SinkListing:
    """The sinks in use and configured, the installed kinds, the broken ones.

    `unusable` says which sinks in use on this machine have a kind or options that are wrong.
    """

    sinks: Sequence[SinkItem]
    installed: Sequence[InstalledSink]
    broken: Sequence[Broken]
    unusable: Sequence[str]

    def sink(self, name: str) -> SinkItem:
        """Return one sink. Raises NotFound with the nearest name."""
        names = [item.name for item in self.sinks]
        did_you_mean.refuse_unknown("sink", name, names, "poller sinks")
        return self.sinks[names.index(name)]

    def kind(self, name: str) -> InstalledSink:
        """Return one installed kind. Raises NotFound with the nearest name."""
        names = [item.name for item in self.installed]
        did_you_mean.refuse_unknown("kind of sink", name, names, "poller sinks")
        return self.installed[names.index(name)]


def read(settings: Settings, overview: Overview | None) -> SinkListing:
    """Return all sinks; `overview` is None while Redis cannot be read."""
    found = registry.survey()
    kinds = configured_kinds(settings)
    kinds_in_use = {kinds[name] for name in settings.sinks}
    installed = [
        _installed(name, admitted, found.distributions[name], name in kinds_in_use)
        for name, admitted in found.plugins.items()
    ]
    return SinkListing(
        sinks=sinks_json.items(overview, settings.sinks, kinds),
        installed=installed,
        broken=found.broken,
        unusable=_unusable(settings),
    )


def _unusable(settings: Settings) -> list[str]:
    """Return the errors of sinks in use, as a worker that starts would find them."""
    found = []
    for name in settings.sinks:
        try:
            registry.check([name], settings.sink)
        except errors.InvalidSetting as error:
            hint = f" ({error.hint})" if error.hint else ""
            found.append(f"{error}{hint}")
    return found


def configured_kinds(settings: Settings) -> Mapping[str, str]:
    """The kind of every sink of the settings, those in use first."""
    names = dict.fromkeys([*settings.sinks, *settings.sink])
    return {name: sink_options.kind_of(name, settings.sink) for name in names}


def _installed(name: str, admitted: Admitted, origin: str, is_used: bool) -> InstalledSink:
    distribution, _, version = origin.rpartition(" ")
    model = sink_options.model_of(admitted.sink)
    options = descriptions.options(admitted.sink) if model else ()
    return InstalledSink(
        name=name,
        distribution=distribution,
        version=version,
        api_version=admitted.api_version,
        used=is_used,
        state="deprecated API" if admitted.notice else "ok",
        deprecated=admitted.notice,
        options=[SinkOption(**option) for option in options],
    )
