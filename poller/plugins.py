"""What is installed in a group of entry points? Built-ins and plugins come in by the same door, one by one:
whatever one of them does while it is loaded, it is named, and the others are there.
"""

from __future__ import annotations

import enum
import logging
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any, Generic, TypeVar

from poller import errors
from poller.domain.inventory import naming
from poller.domain.inventory.api_version import NotServed

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
    METADATA = "unreadable entry points"


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


def points(group: str) -> tuple[list[EntryPoint], list[Broken]]:
    """What is installed in the group, and the distributions that are meant for it but whose list cannot be read."""
    try:
        return list(entry_points(group=group)), []
    except Exception:  # noqa: BLE001  one of them all has a bad line: they are read one by one
        return _one_by_one(group)


def load(
    group: str,
    admit: Callable[[Any, str], T],
    selected: Iterable[EntryPoint] | None = None,
    make: Callable[[Any], Any] | None = None,
) -> Loaded[T]:
    """Import each plugin of the group, or only the selected ones, and `admit` each by its name.

    `make` turns the imported object into the plugin; by default the object is the plugin. `admit`
    raises a ConfigError that says what is wrong. Of two plugins with one name the built-in stays,
    else the first by distribution.
    """
    broken: list[Broken] = []
    if selected is None:
        selected, broken = points(group)
    found: dict[str, T] = {}
    distributions: dict[str, str] = {}
    for point in sorted(selected, key=ours_first):
        if point.name in found:
            reason = f"the name is taken by {distributions[point.name]}"
            broken.append(
                Broken(point.name, origin(point), reason, "uninstall one of them", Fault.DUPLICATE)
            )
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
    return _named(point.dist) if point.dist else "unknown distribution"


def _named(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


def _one_by_one(group: str) -> tuple[list[EntryPoint], list[Broken]]:
    """Of two distributions of one name the first counts, as in an import."""
    found: list[EntryPoint] = []
    broken: list[Broken] = []
    seen: set[str] = set()
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", distribution.name or "").lower()
        if name in seen:
            continue
        seen.update({name} - {""})
        try:
            found += distribution.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001  importlib.metadata lets through what its parser stumbles over
            broken += _unreadable(distribution, group, error)
    return found, broken


def _unreadable(distribution: Distribution, group: str, error: Exception) -> list[Broken]:
    """None if it has nothing for this group: then it is no business of ours."""
    try:
        lines = [
            line.strip() for line in (distribution.read_text("entry_points.txt") or "").splitlines()
        ]
    except Exception:  # noqa: BLE001  bytes that are no text
        lines = [f"[{group}]"]
    if f"[{group}]" not in lines:
        return []
    odd = next((line for line in lines if line and line[0] not in "#[" and "=" not in line), None)
    why = text(error) if odd is None else f'the line "{naming.printable(odd)}" has no ='
    reason = f"its entry_points.txt cannot be read: {why}"
    return [
        Broken(
            distribution.name or "", _named(distribution), reason, "install it anew", Fault.METADATA
        )
    ]


def _made(point: EntryPoint, make: Callable[[Any], Any] | None) -> Any:
    with _watched(point):
        imported = point.load()
        return imported if make is None else make(imported)


def _attempt(point: EntryPoint, step: Callable[[], Any], fault: Fault) -> Any:
    """What the step gives, or a Broken."""
    with _interrupts() as came:
        try:
            return step()
        except NotServed as error:
            return Broken(point.name, origin(point), str(error), error.hint, Fault.VERSION)
        except errors.PollerError as error:
            return Broken(point.name, origin(point), str(error), error.hint, fault)
        except BaseException as error:  # a plugin may raise anything, SystemExit too
            if came.is_set() and isinstance(error, KeyboardInterrupt):
                raise
            return Broken(point.name, origin(point), text(error), "", fault)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Set by a real Ctrl-C, which is for us; a plugin may raise KeyboardInterrupt of its own.

    Only the main thread is ever interrupted.
    """
    came = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return

    def interrupted(number: int, frame: Any) -> None:
        came.set()
        before(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)


def text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001  even that may be broken
        return type(error).__name__


@contextmanager
def _watched(point: EntryPoint) -> Iterator[None]:
    text = (
        '%s "%s" (%s) is still being imported after %g s: whoever waits for it is not at work yet'
    )
    what = (point.group.rpartition(".")[2].removesuffix("s"), point.name, origin(point), SLOW_S)
    timer = threading.Timer(SLOW_S, _log.warning, (text, *what))
    timer.daemon = True
    timer.start()
    try:
        with redirect_stdout(sys.stderr):  # which is for what we say: `--json` has readers
            yield
    finally:
        timer.cancel()
