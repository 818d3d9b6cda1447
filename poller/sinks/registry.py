"""Which sinks are installed, and which of them does this worker write to? Entry points, as for
collectors.
"""

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
    """The class of a sink that can be used, the version of the contract, and what to say of that,
    if anything.
    """

    sink: Any
    api_version: int
    notice: str


def survey(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Loaded[Admitted]:
    """Every installed sink, imported but not made; a broken one never harms the others."""
    return plugins.load(GROUP, partial(admit, served=served), points)


def admit(kind: Any, name: str, served: Mapping[int, Served] = SERVED) -> Admitted:
    """Does the class keep the contract? Raises ConfigError, saying what is wrong."""
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
    """Make the named sinks, in that order; others are not even imported.

    Raises InvalidSetting: a worker without its sink loses data.
    """
    installed, unreadable = plugins.points(GROUP) if points is None else (list(points), [])
    wanted = list(dict.fromkeys(names))
    found = survey([point for point in installed if point.name in wanted])
    made: list[Sink] = []
    for name in wanted:
        try:
            made.append(_make(name, found, stores, {point.name for point in installed}, unreadable))
        except BaseException:
            close_all(made)
            raise
    return made


def close_all(sinks: Iterable[Sink]) -> None:
    """One that cannot be closed keeps no other from it, and hides nothing that happened before."""
    for sink in sinks:
        try:
            sink.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin may raise anything, and we leave anyway
            log.warning("sink_not_closed", sink=sink.name, error=type(error).__name__)


def _make(
    name: str,
    found: Loaded[Admitted],
    stores: Stores,
    known: Iterable[str],
    unreadable: Iterable[Broken],
) -> Sink:
    if name not in found.plugins:
        broken = next((each for each in found.broken if each.name == name), None)
        raise _unknown(name, known, unreadable) if broken is None else _unusable(broken)
    try:
        sink = found.plugins[name].sink(stores)
    except errors.PollerError:
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit too
        raise _unusable(
            Broken(name, found.distributions[name], plugins.error_text(error))
        ) from error
    if not isinstance(sink, Sink):
        raise _unusable(
            Broken(name, found.distributions[name], "it does not implement poller.sinks.api.Sink")
        )
    return sink


def _unknown(
    name: str, known: Iterable[str], unreadable: Iterable[Broken]
) -> errors.InvalidSetting:
    """It may be in a distribution whose list cannot be read."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    cause = "; ".join(f"{each.distribution}: {each.reason}" for each in unreadable)
    return errors.InvalidSetting(
        f'unknown sink "{name}"', cause, hint + "installed: " + ", ".join(sorted(known))
    )


def _unusable(broken: Broken) -> errors.InvalidSetting:
    text = f'sink "{broken.name}" ({broken.distribution}) cannot be used'
    return errors.InvalidSetting(text, cause=broken.reason, hint=broken.hint)
