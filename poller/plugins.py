"""What is installed in a group of entry points? Built-ins and plugins come in by the same door, one by one:
whatever one of them does while it is loaded, it is named, and the others are there.
"""

from __future__ import annotations

import enum
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, Generic, TypeVar

from poller import errors
from poller.domain.api_version import NotServed

#: An import that takes longer is named while it lasts: nobody can end it, and one that hangs looks like nothing else.
SLOW_S = 5.0

_log = logging.getLogger("poller.plugins")

T = TypeVar("T")


class Fault(enum.StrEnum):
    """Why an installed plugin cannot be used."""

    IMPORT = "failed to import"
    DUPLICATE = "duplicate name"
    VERSION = "other API version"
    CONTRACT = "breaks the contract"


@dataclass(frozen=True)
class Broken:
    """A plugin that is installed but cannot be used, and why."""

    name: str
    distribution: str
    reason: str
    hint: str = ""
    state: str = Fault.IMPORT


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """By name: what can be used, and which distribution (`name version`) it comes from."""

    plugins: Mapping[str, T]
    distributions: Mapping[str, str]
    broken: tuple[Broken, ...]


def load(points: Iterable[EntryPoint], make: Callable[[Any], Any], admit: Callable[[Any, str], T]) -> Loaded[T]:
    """Import each, `make` a plugin of what was imported, and `admit` it by its name.

    `admit` raises a ConfigError that says what is wrong. Two of one name: ours stays, else the first by distribution.
    """
    found: dict[str, T] = {}
    distributions: dict[str, str] = {}
    broken: list[Broken] = []
    for point in sorted(points, key=ours_first):
        if point.name in found:
            reason = f"the name is taken by {distributions[point.name]}"
            broken.append(Broken(point.name, origin(point), reason, "uninstall one of them", Fault.DUPLICATE))
            continue
        plugin = _attempt(point, partial(_made, point, make), Fault.IMPORT)
        if not isinstance(plugin, Broken):
            plugin = _attempt(point, partial(admit, plugin, point.name), Fault.CONTRACT)
        if isinstance(plugin, Broken):
            broken.append(plugin)
            continue
        found[point.name] = plugin
        distributions[point.name] = origin(point)
    return Loaded(found, distributions, tuple(broken))


def ours_first(point: EntryPoint) -> tuple[bool, str, str]:
    """Sorts ours first, so that a plugin cannot take a built-in's name by accident of order."""
    return (not is_ours(point), point.name, (point.dist.name if point.dist else "") or "")


def is_ours(point: EntryPoint) -> bool:
    return bool(point.dist and point.dist.name == "poller")


def origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"


def _made(point: EntryPoint, make: Callable[[Any], Any]) -> Any:
    with _watched(point):
        return make(point.load())


def _attempt(point: EntryPoint, step: Callable[[], Any], fault: Fault) -> Any:
    """What the step gives, or a Broken."""
    try:
        return step()
    except KeyboardInterrupt:
        raise
    except NotServed as error:
        return Broken(point.name, origin(point), str(error), error.hint, Fault.VERSION)
    except errors.PollerError as error:
        return Broken(point.name, origin(point), str(error), error.hint, fault)
    except BaseException as error:  # noqa: BLE001  a plugin may raise anything, SystemExit too
        return Broken(point.name, origin(point), text(error), "", fault)


def text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001  even that may be broken
        return type(error).__name__


@contextmanager
def _watched(point: EntryPoint) -> Iterator[None]:
    text = '%s "%s" (%s) is still being imported after %g s: whoever waits for it is not at work yet'
    what = (point.group.rpartition(".")[2].removesuffix("s"), point.name, origin(point), SLOW_S)
    timer = threading.Timer(SLOW_S, _log.warning, (text, *what))
    timer.daemon = True
    timer.start()
    try:
        with redirect_stdout(sys.stderr):  # which is for what we say: `--json` has readers
            yield
    finally:
        timer.cancel()
