"""The version of a contract between this program and a plugin.

A plugin states one version, or the first and the last it works with. A version with a successor is
served until the release that `ends` names; `adapt` turns a plugin of that version into a current
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from poller import errors

#: The `api_version` of a plugin.
Stated = int | tuple[int, int]


def _unchanged(plugin: Any) -> Any:
    return plugin


@dataclass(frozen=True, slots=True)
class Served:
    """A version that this release serves. `ends` is the first release without it, if decided."""

    ends: str = ""
    adapt: Callable[[Any], Any] = _unchanged


class NotServed(errors.ConfigError):
    """Raised when this release serves no version that the plugin works with."""


def span(stated: Any) -> tuple[int, int]:
    """Return the first and the last version a plugin works with. Raises ConfigError."""
    pair = stated if isinstance(stated, tuple) else (stated, stated)
    if not _is_span(pair):
        raise errors.ConfigError(
            f"its api_version is {stated!r:.40}",
            hint="its author writes a number, or the first and the last: (1, 2)",
        )
    return pair


def _is_span(pair: tuple[Any, ...]) -> bool:
    if len(pair) != 2:
        return False
    are_versions = all(type(number) is int and number > 0 for number in pair)
    return are_versions and pair[0] <= pair[1]


def choose(stated: Any, served: Mapping[int, Served], contract: str) -> int:
    """Return the newest version of both sides. Raises NotServed, ConfigError."""
    first, last = span(stated)
    common = [version for version in served if first <= version <= last]
    if common:
        return max(common)

    is_newer = first > max(served)
    hint = "pip install --upgrade poller" if is_newer else "a newer release of the plugin"
    needed = str(first) if first == last else f"{first} to {last}"
    offered = " and ".join(map(str, sorted(served)))
    raise NotServed(f"it needs {contract} API {needed}, this poller serves {offered}", hint=hint)


def notice(version: int, served: Mapping[int, Served], contract: str) -> str:
    """Return a warning that the version ends, empty while no end is decided."""
    ends = served[version].ends
    if not ends:
        return ""
    return f"it uses {contract} API {version}, which poller {ends} will not serve any more"
