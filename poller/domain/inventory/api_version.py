"""Which version of a contract does a plugin speak with us? It names one, or the first and the last it works with.

A version that has a successor goes on being served until the release that `ends` names; `adapt` makes a plugin of
that version look like one of today's, so that nobody else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from poller import errors

#: What a plugin states as its `api_version`.
Stated = int | tuple[int, int]


def _as_it_is(plugin: Any) -> Any:
    return plugin


@dataclass(frozen=True, slots=True)
class Served:
    """A version that this release serves: until `ends`, the first release without it, if that is decided."""

    ends: str = ""
    adapt: Callable[[Any], Any] = _as_it_is


class NotServed(errors.ConfigError):
    """No version that the plugin works with is served here."""


def span(stated: Any) -> tuple[int, int]:
    """The first and the last version a plugin works with. Raises ConfigError for anything else."""
    pair = stated if isinstance(stated, tuple) else (stated, stated)
    if (
        len(pair) != 2
        or not all(type(number) is int and number > 0 for number in pair)
        or pair[0] > pair[1]
    ):
        raise errors.ConfigError(
            f"its api_version is {stated!r:.40}",
            hint="its author writes a number, or the first and the last: (1, 2)",
        )
    return pair


def choose(stated: Any, served: Mapping[int, Served], contract: str) -> int:
    """The newest version that both sides know. Raises NotServed, ConfigError."""
    first, last = span(stated)
    known = [version for version in served if first <= version <= last]
    if known:
        return max(known)
    newer = first > max(served)
    raise NotServed(
        f"it needs {contract} API {told((first, last))}, this poller serves {_several(served)}",
        hint="pip install --upgrade poller" if newer else "a newer release of the plugin",
    )


def told(stated: Stated) -> str:
    """`1`, `1 to 3`"""
    first, last = span(stated)
    return str(first) if first == last else f"{first} to {last}"


def notice(version: int, served: Mapping[int, Served], contract: str) -> str:
    """What to say of a plugin that speaks this version; nothing while it is not known when that ends."""
    ends = served[version].ends
    return (
        f"it uses {contract} API {version}, which poller {ends} will not serve any more"
        if ends
        else ""
    )


def _several(served: Mapping[int, Served]) -> str:
    return " and ".join(map(str, sorted(served)))
