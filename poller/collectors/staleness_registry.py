"""Loads the installed staleness sources from entry points; a broken source affects no other."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint

from poller import errors, plugins
from poller.domain.scheduling.staleness import Evidence, Source
from poller.plugins import Broken

GROUP = "poller.staleness"


class BadScore(Exception):
    """A staleness source raised, or returned a value that is no score."""


@dataclass(frozen=True)
class Sources:
    functions: Mapping[str, Source] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()

    def check(self, name: str) -> str:
        """Return the name if the source is usable.

        Raises InvalidInput that names the nearest source, or the fault of a broken one.
        """
        if name in self.functions:
            return name
        for broken in self.broken:
            if broken.name == name:
                text = f'staleness source "{name}" ({broken.distribution}) cannot be used'
                raise errors.InvalidInput(text, cause=broken.reason, hint=broken.hint)

        hint = "installed: " + ", ".join(sorted(self.functions))
        nearest = difflib.get_close_matches(name, self.functions, n=1)
        if nearest:
            hint = f"did you mean {nearest[0]}? {hint}"
        raise errors.InvalidInput(f'unknown staleness source "{name}"', hint=hint)

    def compares(self, name: str) -> bool:
        """Return whether a source compares the readings of two polls."""
        return bool(getattr(self.functions.get(name), "comparing", False))

    def score(self, name: str, evidence: Evidence) -> float:
        """Return the score of a source. Raises BadScore for every fault of the source."""
        source = self.functions.get(name)
        if source is None:
            raise BadScore("it is not installed here")
        try:
            score = float(source(evidence))
        except Exception as error:  # noqa: BLE001  door: a plugin may raise anything
            raise BadScore(f"{type(error).__name__}: {error}") from None
        if math.isnan(score):
            raise BadScore("its score is not a number")
        return score


def load(points: Iterable[EntryPoint] | None = None) -> Sources:
    """Import every source of the entry-point group, built-ins and plugins alike."""
    loaded = plugins.load(GROUP, _admit, points)
    return Sources(loaded.plugins, loaded.broken)


def _admit(source: Source, _name: str) -> Source:
    if not callable(source):
        raise errors.ConfigError("it is no function")
    return source
