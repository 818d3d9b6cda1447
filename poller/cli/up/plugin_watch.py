"""Detects plugins that are installed, upgraded or removed while `poller up` runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution

GROUPS = {
    "poller.collectors": "collector",
    "poller.sinks": "sink",
    "poller.jobs": "job",
    "poller.staleness": "staleness source",
}
CHECK_EVERY_S = 1.0
#: Directories must stay unchanged for this long before an installation counts as finished.
QUIET_S = 1.0


@dataclass(frozen=True, slots=True, order=True)
class Plugin:
    """An installed entry point and the distribution, with version, that provides it."""

    kind: str
    name: str
    distribution: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.distribution})"


class PluginWatch:
    """Compares modification times of directories; reads their contents only on a change."""

    def __init__(self) -> None:
        self._times = _times()
        self._plugins = _plugins()
        self._check_mono = 0.0
        self._changed_mono: float | None = None

    def changes(self, now_mono: float) -> str:
        """The plugins installed and removed since the last non-empty result; usually none."""
        if now_mono < self._check_mono:
            return ""

        self._check_mono = now_mono + CHECK_EVERY_S

        times = _times()
        if times != self._times:
            self._times = times
            self._changed_mono = now_mono

        if self._changed_mono is None or now_mono < self._changed_mono + QUIET_S:
            return ""

        self._changed_mono = None
        before = self._plugins
        self._plugins = _plugins()

        return _difference(before, self._plugins)


def _difference(before: Mapping[Plugin, int], after: Mapping[Plugin, int]) -> str:
    """`installed: collector demo (poller-demo 0.1.0)`"""
    both = before.keys() & after.keys()
    parts = [
        _phrase("installed", after.keys() - before.keys()),
        _phrase("installed again", {plugin for plugin in both if before[plugin] != after[plugin]}),
        _phrase("removed", before.keys() - after.keys()),
    ]
    return "; ".join(part for part in parts if part)


def _phrase(verb: str, plugins: Iterable[Plugin]) -> str:
    """`installed: collector demo (poller-demo 0.1.0)`, or an empty text."""
    names = ", ".join(map(str, sorted(plugins)))
    return f"{verb}: {names}" if names else ""


def _times() -> tuple[int, ...]:
    """The modification times of all directories on the module path."""
    times = []
    for directory in sys.path:
        with suppress(OSError):
            times.append(os.stat(directory or ".").st_mtime_ns)
    return tuple(times)


def _plugins() -> dict[Plugin, int]:
    """Installed plugins with the time of their installation: a developer repeats the same version.

    Poller's own are left out: new workers must not run beside a scheduler of the old version.
    """
    from poller import plugins

    found = {}
    for group, kind in GROUPS.items():
        for point in plugins.points(group)[0]:
            if not plugins.is_ours(point):
                plugin = Plugin(kind, point.name, plugins.origin(point))
                found[plugin] = _installed_ns(point.dist)

    return found


def _installed_ns(distribution: Distribution | None) -> int:
    """The time at which an installer wrote RECORD, its last step; 0 without a RECORD."""
    files = (distribution.files if distribution else None) or ()
    records = [str(file.locate()) for file in files if file.name == "RECORD"]

    try:
        return max((os.stat(record).st_mtime_ns for record in records), default=0)
    except OSError:
        return 0
