"""The installed sinks (entry points, as for collectors), and those that a worker writes to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

from poller import errors, plugins
from poller.domain.inventory import api_version
from poller.domain.inventory.api_version import Served
from poller.observability import logs
from poller.plugins import Broken, Loaded
from poller.sinks.api import SERVED, Sink, Stores

log = logs.get(__name__)

GROUP = "poller.sinks"


class Admitted(NamedTuple):
    """The class of a usable sink, its version of the contract, and a notice about that version."""

    sink: Any
    api_version: int
    notice: str


def survey(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Loaded[Admitted]:
    """Import every installed sink without making it. A broken sink does not affect the others."""
    return plugins.load(GROUP, partial(admit, served=served), points)


def admit(kind: Any, name: str, served: Mapping[int, Served] = SERVED) -> Admitted:
    """Check the class of a sink against the contract. Raises ConfigError with the violation."""
    for method in ("write", "close"):
        if not callable(getattr(kind, method, None)):
            raise errors.ConfigError(
                "it does not implement poller.sinks.api.Sink", cause=f"it has no {method}"
            )
    if getattr(kind, "name", None) != name:
        raise errors.ConfigError(f'it calls itself "{getattr(kind, "name", "")}"')
    version = api_version.choose(getattr(kind, "api_version", None), served, "sink")
    return Admitted(
        served[version].adapt(kind), version, api_version.notice(version, served, "sink")
    )


def load(
    names: Iterable[str], stores: Stores, points: Iterable[EntryPoint] | None = None
) -> list[Sink]:
    """Make the named sinks in that order, and import no others.

    Raises InvalidSetting: a worker without its sink loses data.
    """
    installed, unreadable = plugins.points(GROUP) if points is None else (list(points), [])
    installed_names = {point.name for point in installed}
    unique_names = list(dict.fromkeys(names))
    loaded = survey([point for point in installed if point.name in unique_names])
    made: list[Sink] = []
    for name in unique_names:
        try:
            made.append(_make(name, loaded, stores, installed_names, unreadable))
        except BaseException:
            close_all(made)
            raise
    return made


def close_all(sinks: Iterable[Sink]) -> None:
    """Close every sink. A sink that cannot be closed is logged, and raises nothing."""
    for sink in sinks:
        try:
            sink.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  the door to a plugin's sink
            log.warning("sink_not_closed", sink=sink.name, error=type(error).__name__)


def _make(
    name: str,
    loaded: Loaded[Admitted],
    stores: Stores,
    installed_names: Iterable[str],
    unreadable: Iterable[Broken],
) -> Sink:
    if name not in loaded.plugins:
        broken = next((each for each in loaded.broken if each.name == name), None)
        if broken is None:
            raise _unknown(name, installed_names, unreadable)
        raise _unusable(broken)

    distribution = loaded.distributions[name]
    try:
        sink = loaded.plugins[name].sink(stores)
    except errors.PollerError:
        raise
    except BaseException as error:  # the door to a plugin's class: it can raise SystemExit, too
        raise _unusable(Broken(name, distribution, plugins.error_text(error))) from error
    if not isinstance(sink, Sink):
        reason = "it does not implement poller.sinks.api.Sink"
        raise _unusable(Broken(name, distribution, reason))
    return sink


def _unknown(
    name: str, installed_names: Iterable[str], unreadable: Iterable[Broken]
) -> errors.InvalidSetting:
    """Return the error for an unknown sink, with the distributions that could not be read."""
    near = difflib.get_close_matches(name, list(installed_names), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    cause = "; ".join(f"{each.distribution}: {each.reason}" for each in unreadable)
    return errors.InvalidSetting(
        f'unknown sink "{name}"', cause, hint + "installed: " + ", ".join(sorted(installed_names))
    )


def _unusable(broken: Broken) -> errors.InvalidSetting:
    text = f'sink "{broken.name}" ({broken.distribution}) cannot be used'
    return errors.InvalidSetting(text, cause=broken.reason, hint=broken.hint)
