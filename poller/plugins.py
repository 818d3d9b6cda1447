"""Loads the plugins of an entry-point group; built-ins come in by the same path as any other.

A plugin that fails to load becomes a `Broken` with its name and reason, and the others load.
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

#: A longer import is logged while it lasts. An import cannot be ended from outside.
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
    """The usable plugins and their distributions (`name version`), by name; and the broken ones."""

    plugins: Mapping[str, T]
    distributions: Mapping[str, str]
    broken: tuple[Broken, ...]


def points(group: str) -> tuple[list[EntryPoint], list[Broken]]:
    """The entry points of a group, and the distributions whose list of them is unreadable."""
    try:
        return list(entry_points(group=group)), []
    except Exception:  # noqa: BLE001  door: metadata of other packages; one bad line fails all
        return _points_by_distribution(group)


def load(
    group: str,
    admit: Callable[[Any, str], T],
    selected: Iterable[EntryPoint] | None = None,
    make: Callable[[Any], Any] | None = None,
) -> Loaded[T]:
    """Import each plugin of the group, or only the selected ones, and `admit` each by its name.

    `make` turns the imported object into the plugin; by default the object is the plugin. `admit`
    raises a ConfigError for a plugin that breaks the contract. Of two plugins with one name the
    built-in one stays, else the first by distribution.
    """
    broken: list[Broken] = []
    if selected is None:
        selected, broken = points(group)

    loaded: dict[str, T] = {}
    origins: dict[str, str] = {}
    for point in sorted(selected, key=ours_first):
        if point.name in loaded:
            broken.append(_duplicate(point, origins[point.name]))
            continue
        plugin = _attempt(point, partial(_made, point, make), Fault.IMPORT)
        if not isinstance(plugin, Broken):
            plugin = _attempt(point, partial(admit, plugin, point.name), Fault.CONTRACT)
        if isinstance(plugin, Broken):
            broken.append(plugin)
            continue
        loaded[point.name] = plugin
        origins[point.name] = origin(point)
    return Loaded(loaded, origins, tuple(broken))


def ours_first(point: EntryPoint) -> tuple[bool, str, str]:
    """The sort key of loading: built-ins first, so that no plugin takes the name of one."""
    distribution = point.dist.name if point.dist else ""
    return (not is_ours(point), point.name, distribution or "")


def is_ours(point: EntryPoint) -> bool:
    """True for a built-in plugin."""
    return bool(point.dist and point.dist.name == "poller")


def origin(point: EntryPoint) -> str:
    """The distribution of an entry point, as `name version`."""
    return _named(point.dist) if point.dist else "unknown distribution"


def error_text(error: BaseException) -> str:
    """Class and message of an exception that a plugin raised, even if its `str` fails."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001  door: the plugin's own exception class
        return type(error).__name__


def _named(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


def _duplicate(point: EntryPoint, taken_by: str) -> Broken:
    return Broken(
        name=point.name,
        distribution=origin(point),
        reason=f"the name is taken by {taken_by}",
        hint="uninstall one of them",
        state=Fault.DUPLICATE,
    )


def _points_by_distribution(group: str) -> tuple[list[EntryPoint], list[Broken]]:
    """Read each distribution alone. Of two with one name the first counts, as in an import."""
    found: list[EntryPoint] = []
    broken: list[Broken] = []
    names: set[str] = set()
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", distribution.name or "").lower()
        if name in names:
            continue
        if name:
            names.add(name)
        try:
            found += distribution.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001  door: the parser of importlib.metadata
            broken += _unreadable(distribution, group, error)
    return found, broken


def _unreadable(distribution: Distribution, group: str, error: Exception) -> list[Broken]:
    """One Broken, or none if the distribution has no entry points of this group."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
        lines = [line.strip() for line in text.splitlines()]
    except Exception:  # noqa: BLE001  door: metadata of another package that is not text
        lines = [f"[{group}]"]
    if f"[{group}]" not in lines:
        return []

    bad_lines = (line for line in lines if line and line[0] not in "#[" and "=" not in line)
    bad_line = next(bad_lines, None)
    if bad_line is None:
        problem = error_text(error)
    else:
        problem = f'the line "{naming.printable(bad_line)}" has no ='
    return [
        Broken(
            name=distribution.name or "",
            distribution=_named(distribution),
            reason=f"its entry_points.txt cannot be read: {problem}",
            hint="reinstall it",
            state=Fault.METADATA,
        )
    ]


def _made(point: EntryPoint, make: Callable[[Any], Any] | None) -> Any:
    with _watched(point):
        imported = point.load()
        return imported if make is None else make(imported)


def _attempt(point: EntryPoint, step: Callable[[], Any], fault: Fault) -> Any:
    """The result of the step, or a Broken."""
    with _interrupts() as interrupted:
        try:
            return step()
        except NotServed as error:
            return Broken(point.name, origin(point), str(error), error.hint, Fault.VERSION)
        except errors.PollerError as error:
            return Broken(point.name, origin(point), str(error), error.hint, fault)
        except BaseException as error:  # door: the plugin, which may raise even SystemExit
            if interrupted.is_set() and isinstance(error, KeyboardInterrupt):
                raise
            return Broken(point.name, origin(point), error_text(error), "", fault)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, as opposed to a KeyboardInterrupt that a plugin raises.

    Signals reach the main thread only; in any other thread the event is never set.
    """
    interrupted = threading.Event()
    previous = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or not callable(previous):
        yield interrupted
        return

    def handle(number: int, frame: Any) -> None:
        interrupted.set()
        previous(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        if signal.getsignal(signal.SIGINT) is handle:
            signal.signal(signal.SIGINT, previous)


@contextmanager
def _watched(point: EntryPoint) -> Iterator[None]:
    """Log an import that takes long, and send its prints to stderr: stdout is for `--json`."""
    kind = point.group.rpartition(".")[2].removesuffix("s")
    text = '%s "%s" (%s) is still being imported after %g s; this process waits for it'
    arguments = (text, kind, point.name, origin(point), SLOW_S)
    timer = threading.Timer(SLOW_S, _log.warning, arguments)
    timer.daemon = True
    timer.start()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        timer.cancel()
