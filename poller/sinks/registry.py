"""The installed sinks (entry points, as for collectors), and those that a worker writes to."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

import pydantic

from poller import errors, plugins
from poller.domain.inventory import api_version
from poller.domain.inventory.api_version import Served
from poller.observability import logs
from poller.plugins import Broken, Loaded
from poller.sinks import sink_options
from poller.sinks.api import SERVED, WRITE_POLLS, Sink, Stores
from poller.sinks.made_sink import LeftOut, MadeSink
from poller.sinks.sink_options import Tables

log = logs.get(__name__)

GROUP = "poller.sinks"
NO_TABLES: Tables = {}


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
    _check_options_model(kind)
    _check_write_polls(kind)
    version = api_version.choose(getattr(kind, "api_version", None), served, "sink")
    return Admitted(
        served[version].adapt(kind), version, api_version.notice(version, served, "sink")
    )


def _check_options_model(kind: Any) -> None:
    model = sink_options.model_of(kind)
    if model is None:
        return
    if not (isinstance(model, type) and issubclass(model, pydantic.BaseModel)):
        raise errors.ConfigError("its Options is no pydantic model")
    if model.model_config.get("extra") != "forbid":
        raise errors.ConfigError(
            "its Options takes unknown options",
            hint='set model_config = ConfigDict(extra="forbid")',
        )


def _check_write_polls(kind: Any) -> None:
    polls = getattr(kind, "write_polls", WRITE_POLLS)
    if type(polls) is not int or polls < 1:
        raise errors.ConfigError("its write_polls is no whole number from 1")


def load(
    names: Iterable[str],
    stores: Stores,
    points: Iterable[EntryPoint] | None = None,
    tables: Tables = NO_TABLES,
) -> list[MadeSink]:
    """Make the named sinks in that order, and import no others. `tables` has their options.

    Raises InvalidSetting: a worker without its sink loses data.
    """
    unique_names = list(dict.fromkeys(names))
    shelf = _shelf(unique_names, tables, points)
    made: list[MadeSink] = []
    for name in unique_names:
        try:
            made.append(_make(name, tables, shelf, stores))
        except BaseException:
            close_all(made)
            raise
    return made


def check(names: Iterable[str], tables: Tables) -> None:
    """Check kind and options of the named sinks without making them. Raises InvalidSetting."""
    unique_names = list(dict.fromkeys(names))
    shelf = _shelf(unique_names, tables)
    for name in unique_names:
        sink_class = shelf.take(name, sink_options.kind_of(name, tables))
        sink_options.checked(name, sink_class, sink_options.written_options(name, tables))


def close_all(sinks: Iterable[MadeSink]) -> None:
    """Close every sink. A sink that cannot be closed is logged, and raises nothing."""
    for made in sinks:
        try:
            made.sink.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  the door to a plugin's sink
            log.warning("sink_not_closed", sink=made.name, error=type(error).__name__)


class _Shelf(NamedTuple):
    """The loaded sinks, the names of all that are installed, and unreadable distributions."""

    loaded: Loaded[Admitted]
    installed: list[str]
    unreadable: Iterable[Broken]
    tables: Tables

    def take(self, name: str, kind: str) -> Any:
        """Return the class of a kind. Raises InvalidSetting."""
        if kind in self.loaded.plugins:
            return self.loaded.plugins[kind].sink
        broken = next((each for each in self.loaded.broken if each.name == kind), None)
        if broken is None:
            if name == kind and name in self.tables:
                raise _without_kind(name, self.installed)
            raise _unknown(name, kind, self.installed, self.unreadable)
        raise _unusable(broken)


def _shelf(
    names: Iterable[str], tables: Tables, points: Iterable[EntryPoint] | None = None
) -> _Shelf:
    """Import the sinks that the names need, and no others."""
    installed, unreadable = plugins.points(GROUP) if points is None else (list(points), [])
    kinds = {sink_options.kind_of(name, tables) for name in names}
    loaded = survey([point for point in installed if point.name in kinds])
    return _Shelf(loaded, sorted({point.name for point in installed}), unreadable, tables)


def _make(name: str, tables: Tables, shelf: _Shelf, stores: Stores) -> MadeSink:
    kind = sink_options.kind_of(name, tables)
    sink_class = shelf.take(name, kind)
    options = sink_options.checked(name, sink_class, sink_options.written_options(name, tables))
    left_out = LeftOut()
    stores = dataclasses.replace(stores, name=name, dropped=left_out.add)

    distribution = shelf.loaded.distributions[kind]
    try:
        sink = sink_class(stores) if options is None else sink_class(stores, options)
    except errors.PollerError:
        raise
    except BaseException as error:  # the door to a plugin's class: it can raise SystemExit, too
        raise _unusable(Broken(name, distribution, plugins.error_text(error))) from error
    if not isinstance(sink, Sink):
        reason = "it does not implement poller.sinks.api.Sink"
        raise _unusable(Broken(name, distribution, reason))
    return MadeSink(name, kind, sink, left_out)


def _unknown(
    name: str, kind: str, installed: list[str], unreadable: Iterable[Broken]
) -> errors.InvalidSetting:
    """Return the error for an unknown sink, with the distributions that could not be read."""
    near = difflib.get_close_matches(kind, installed, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    cause = "; ".join(f"{each.distribution}: {each.reason}" for each in unreadable)
    place = f"[sink.{name}] kind: " if kind != name else ""
    return errors.InvalidSetting(
        f'{place}unknown sink "{kind}"', cause, hint + "installed: " + ", ".join(installed)
    )


def _without_kind(name: str, installed: list[str]) -> errors.InvalidSetting:
    return errors.InvalidSetting(
        f"[sink.{name}] kind: it must be set, because no installed sink has the name {name}",
        hint=f"add kind to the table, one of {', '.join(installed)}",
    )


def _unusable(broken: Broken) -> errors.InvalidSetting:
    text = f'sink "{broken.name}" ({broken.distribution}) cannot be used'
    return errors.InvalidSetting(text, cause=broken.reason, hint=broken.hint)
