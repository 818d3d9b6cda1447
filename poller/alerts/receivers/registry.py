"""The installed receivers (entry points, as for sinks), and those of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

import pydantic

from poller import errors, plugins
from poller.alerts.receivers.api import SERVED, Place, Receiver
from poller.domain.inventory import api_version, duration
from poller.domain.inventory.api_version import Served
from poller.domain.inventory.did_you_mean import nearest
from poller.plugins import Loaded
from poller.sinks import sink_options

GROUP = "poller.receivers"
KIND = "kind"
GIVE_UP_AFTER = "give_up_after"
DEFAULT_GIVE_UP_MS = 86_400_000
_LEAST_GIVE_UP_MS = 60_000
_MOST_GIVE_UP_MS = 31 * 86_400_000

Tables = Mapping[str, Mapping[str, Any]]


class Admitted(NamedTuple):
    """The class of a usable receiver, and a notice about its version of the contract."""

    receiver: Any
    notice: str


class MadeReceiver(NamedTuple):
    """A receiver of the settings. A delivery is dead after `give_up_ms`."""

    name: str
    kind: str
    receiver: Receiver
    give_up_ms: int


def survey(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Loaded[Admitted]:
    """Import every installed receiver without making it. A broken one does not affect others."""
    return plugins.load(GROUP, partial(admit, served=served), points)


def admit(kind: Any, name: str, served: Mapping[int, Served] = SERVED) -> Admitted:
    """Check the class of a receiver. Raises ConfigError with the violation of the contract."""
    for method in ("send", "close"):
        if not callable(getattr(kind, method, None)):
            raise errors.ConfigError(
                "it does not implement poller.alerts.receivers.api.Receiver",
                cause=f"it has no {method}",
            )
    if getattr(kind, "name", None) != name:
        raise errors.ConfigError(f'it calls itself "{getattr(kind, "name", "")}"')
    model = sink_options.model_of(kind)
    if not (isinstance(model, type) and issubclass(model, pydantic.BaseModel)):
        raise errors.ConfigError("its Options is no pydantic model")
    if model.model_config.get("extra") != "forbid":
        raise errors.ConfigError(
            "its Options takes unknown options",
            hint='set model_config = ConfigDict(extra="forbid")',
        )
    version = api_version.choose(getattr(kind, "api_version", None), served, "receiver")
    return Admitted(served[version].adapt(kind), api_version.notice(version, served, "receiver"))


def make(
    name: str, tables: Tables, web_url: str = "", points: Iterable[EntryPoint] | None = None
) -> MadeReceiver:
    """Make one receiver of the settings. It connects to nothing. Raises InvalidSetting."""
    receiver_class, options, give_up_ms = _checked(name, tables, points)
    kind = kind_of(name, tables)
    try:
        made = receiver_class(Place(name, web_url), options)
    except errors.ConfigError as error:
        text = f"[receiver.{name}] {error.message}"
        raise errors.InvalidSetting(text, error.cause, error.hint) from None
    except BaseException as error:  # the door to a plugin's class: it can raise SystemExit, too
        text = f"[receiver.{name}] a receiver of the kind {kind} cannot be made"
        raise errors.InvalidSetting(text, plugins.error_text(error)) from error
    return MadeReceiver(name, kind, made, give_up_ms)


def check(tables: Tables) -> None:
    """Check kind, options and files of every table. Raises InvalidSetting."""
    for name in tables:
        made = make(name, tables)
        close(made)


def close(made: MadeReceiver) -> None:
    """Close a receiver; what it raises is of no use any more."""
    with suppress(Exception, SystemExit):  # the door to a plugin's receiver
        made.receiver.close()


def kind_of(name: str, tables: Tables) -> str:
    """The entry point of a receiver: `kind` of its table, else its own name."""
    return str(tables.get(name, {}).get(KIND, name))


def _checked(
    name: str, tables: Tables, points: Iterable[EntryPoint] | None
) -> tuple[Any, pydantic.BaseModel | None, int]:
    kind = kind_of(name, tables)
    installed, _ = plugins.points(GROUP) if points is None else (list(points), [])
    loaded = survey([point for point in installed if point.name == kind])
    if kind not in loaded.plugins:
        raise _unusable(name, kind, loaded, sorted({point.name for point in installed}))
    receiver_class = loaded.plugins[kind].receiver
    table = tables[name]
    written = {key: value for key, value in table.items() if key not in (KIND, GIVE_UP_AFTER)}
    with _table_named(name):
        options = sink_options.checked(name, receiver_class, written)
    return receiver_class, options, _give_up_ms(name, table)


@contextmanager
def _table_named(name: str) -> Iterator[None]:
    """Name the table of a receiver in the errors of the check that sinks share."""
    try:
        yield
    except errors.InvalidSetting as error:
        text = error.message.replace(f"[sink.{name}]", f"[receiver.{name}]")
        raise errors.InvalidSetting(text, error.cause, error.hint) from None


def _unusable(
    name: str, kind: str, loaded: Loaded[Admitted], installed: list[str]
) -> errors.InvalidSetting:
    for broken in loaded.broken:
        if broken.name == kind:
            text = f'[receiver.{name}] kind: "{kind}" ({broken.distribution}) cannot be used'
            return errors.InvalidSetting(text, broken.reason, broken.hint)
    near = nearest(kind, installed)
    hint = f"did you mean {near}? " if near else ""
    return errors.InvalidSetting(
        f'[receiver.{name}] kind: there is no receiver of the kind "{kind}"',
        hint=f"{hint}installed: {', '.join(installed)}",
    )


def _give_up_ms(name: str, table: Mapping[str, Any]) -> int:
    if GIVE_UP_AFTER not in table:
        return DEFAULT_GIVE_UP_MS
    try:
        given_ms = duration.parse_ms(table[GIVE_UP_AFTER])
    except errors.InvalidInput as error:
        text = f"[receiver.{name}] {GIVE_UP_AFTER}: {error.message}"
        raise errors.InvalidSetting(text, hint=error.hint) from None
    if not _LEAST_GIVE_UP_MS <= given_ms <= _MOST_GIVE_UP_MS:
        text = f"[receiver.{name}] {GIVE_UP_AFTER}: {table[GIVE_UP_AFTER]} is out of bounds"
        raise errors.InvalidSetting(text, hint="choose 1m to 31d")
    return given_ms
