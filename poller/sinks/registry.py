"""Which sinks are installed, and which of them does this worker write to? Entry points, as for collectors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from poller import errors
from poller.sinks.api import API_VERSION, Sink, Stores

GROUP = "poller.sinks"


def installed(points: Iterable[EntryPoint] | None = None) -> dict[str, EntryPoint]:
    """Sinks by name, without importing them; ours cannot be replaced by a plugin of the same name."""
    found = sorted(points if points is not None else entry_points(group=GROUP), key=_plugins_first)
    return {point.name: point for point in found}


def load(names: Iterable[str], stores: Stores, points: Iterable[EntryPoint] | None = None) -> list[Sink]:
    """Make the named sinks, in that order. Raises InvalidSetting: a worker without its sink loses data."""
    known = installed(points)
    made: list[Sink] = []
    for name in dict.fromkeys(names):
        if name not in known:
            close_all(made)
            raise _unknown(name, known)
        try:
            made.append(_make(known[name], stores))
        except BaseException:
            close_all(made)
            raise
    return made


def close_all(sinks: Iterable[Sink]) -> None:
    for sink in sinks:
        sink.close()


def _make(point: EntryPoint, stores: Stores) -> Sink:
    try:
        sink = point.load()(stores)
    except errors.PollerError:
        raise
    except Exception as error:  # a plugin may raise anything at import
        raise _unusable(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(sink, Sink):
        raise _unusable(point, "it does not implement poller.sinks.api.Sink")
    if sink.api_version != API_VERSION:
        raise _unusable(point, f"it needs sink API {sink.api_version}, this is {API_VERSION}")
    return sink


def _plugins_first(point: EntryPoint) -> tuple[bool, str]:
    """The last of one name wins, so ours come last."""
    distribution = point.dist.name if point.dist else ""
    return (distribution == "poller", distribution)


def _unknown(name: str, known: Iterable[str]) -> errors.InvalidSetting:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return errors.InvalidSetting(f'unknown sink "{name}"', hint=hint + "installed: " + ", ".join(sorted(known)))


def _unusable(point: EntryPoint, reason: str) -> errors.InvalidSetting:
    origin = f" ({point.dist.name} {point.dist.version})" if point.dist else ""
    return errors.InvalidSetting(f'sink "{point.name}"{origin} cannot be used', cause=reason)
