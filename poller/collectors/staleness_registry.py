"""Which staleness sources are installed? Entry points, as for collectors; a broken one never harms the others."""

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
    """A source raised, or gave something that is no score; the text says what."""


@dataclass(frozen=True)
class Sources:
    functions: Mapping[str, Source] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()

    def check(self, name: str) -> str:
        """The name of a source that can be used. Raises InvalidInput, naming the nearest one or why it is broken."""
        if name in self.functions:
            return name
        for broken in self.broken:
            if broken.name == name:
                text = f'staleness source "{name}" ({broken.distribution}) cannot be used'
                raise errors.InvalidInput(text, cause=broken.reason, hint=broken.hint)
        near = difflib.get_close_matches(name, self.functions, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise errors.InvalidInput(
            f'unknown staleness source "{name}"',
            hint=hint + "installed: " + ", ".join(sorted(self.functions)),
        )

    def compares(self, name: str) -> bool:
        """Does it look at the readings of two polls?"""
        return bool(getattr(self.functions.get(name), "comparing", False))

    def score(self, name: str, evidence: Evidence) -> float:
        """What the source says. Raises BadScore: a plugin may do anything."""
        source = self.functions.get(name)
        if source is None:
            raise BadScore("it is not installed here")
        try:
            score = float(source(evidence))
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            raise BadScore(f"{type(error).__name__}: {error}") from None
        if math.isnan(score):
            raise BadScore("its score is not a number")
        return score


def load(points: Iterable[EntryPoint] | None = None) -> Sources:
    """Import every source of the entry-point group, built-ins and plugins alike."""
    installed, unreadable = plugins.points(GROUP) if points is None else (points, [])
    found = plugins.load(installed, lambda source: source, _admit, unreadable)
    return Sources(found.plugins, found.broken)


def _admit(source: Source, _name: str) -> Source:
    if not callable(source):
        raise errors.ConfigError("it is no function")
    return source
