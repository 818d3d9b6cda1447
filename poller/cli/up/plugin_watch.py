"""Was a plugin installed, upgraded or removed since? For `poller up`, whose workers must start again to know it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import Distribution

GROUPS = ("poller.collectors", "poller.sinks", "poller.staleness")
LOOK_EVERY_S = 1.0
#: So long nothing must change before we believe that pip is done.
QUIET_S = 1.0

Plugin = tuple[str, str, str]  # group, name, and distribution with version


class Installed:
    """Looks at the times of directories, which costs next to nothing, and at their contents only when these changed."""

    def __init__(self) -> None:
        self._times = _times()
        self._plugins = _plugins()
        self._look_at = 0.0
        self._changed_at: float | None = None

    def news(self, now: float) -> str:
        """What came and went since it last said something; mostly nothing. `now` is of a monotonic clock."""
        if now < self._look_at:
            return ""
        self._look_at = now + LOOK_EVERY_S
        times = _times()
        if times != self._times:
            self._times, self._changed_at = times, now
        if self._changed_at is None or now < self._changed_at + QUIET_S:
            return ""
        self._changed_at = None
        before, self._plugins = self._plugins, _plugins()
        return _told(before, self._plugins)


def _told(before: Mapping[Plugin, int], after: Mapping[Plugin, int]) -> str:
    """`installed: collector demo (poller-demo 0.1.0)`"""
    again = {plugin for plugin in before.keys() & after.keys() if before[plugin] != after[plugin]}
    parts = [
        ("installed", after.keys() - before.keys()),
        ("installed again", again),
        ("removed", before.keys() - after.keys()),
    ]
    return "; ".join(
        f"{verb}: {', '.join(sorted(map(_named, found)))}" for verb, found in parts if found
    )


def _named(plugin: Plugin) -> str:
    group, name, distribution = plugin
    kind = {"poller.collectors": "collector", "poller.sinks": "sink"}.get(group, "staleness source")
    return f"{kind} {name} ({distribution})"


def _times() -> tuple[int, ...]:
    times = []
    for directory in sys.path:
        with suppress(OSError):
            times.append(os.stat(directory or ".").st_mtime_ns)
    return tuple(times)


def _plugins() -> dict[Plugin, int]:
    """Each with the time of its installation: who works on a plugin installs the same version many times.

    Not our own: a new poller beside a scheduler of the old one is worse than an old one.
    """
    from poller import plugins

    found = ((group, point) for group in GROUPS for point in plugins.points(group)[0])
    return {
        (group, point.name, plugins.origin(point)): _installed_ns(point.dist)
        for group, point in found
        if not plugins.is_ours(point)
    }


def _installed_ns(distribution: Distribution | None) -> int:
    """When its RECORD was written, the last thing an installer does; 0 if it has none."""
    files = (distribution.files if distribution else None) or ()
    with suppress(OSError):
        return max(
            (os.stat(str(file.locate())).st_mtime_ns for file in files if file.name == "RECORD"),
            default=0,
        )
    return 0
