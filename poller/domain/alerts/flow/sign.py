"""Signs: what is known now of one rule and one subject.

A sign holds, or the condition is known to be gone, or neither. Neither is no proof: Redis may have
been emptied, or a worker may be new. So an alert that has no sign stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import Rule

#: Instants so far ahead are of a clock that was set back since.
AHEAD_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A condition that holds. Instants are UTC milliseconds by the board's clock."""

    rule: Rule
    subject: Subject
    since_ms: int  # when the condition began
    seen_ms: int  # the last poll that showed it
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The identity of the alert that the sign is for."""
        return self.subject.identity(self.rule.name)

    def by_clock(self, now_ms: int) -> Sign:
        """Return the sign without instants that are still to come."""
        if max(self.since_ms, self.seen_ms) <= now_ms + AHEAD_MS:
            return self
        return replace(self, since_ms=min(self.since_ms, now_ms), seen_ms=min(self.seen_ms, now_ms))


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of one look. Keys are identities of alerts.

    `gone` has the instant since which the condition is known not to hold, `ended` the reason why an
    alert ends whatever was seen: its rule or its subject was removed. A full look read everything,
    so a sign that it does not have is not known any more.
    """

    holding: Mapping[str, Sign] = field(default_factory=dict)
    gone: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)
    is_full: bool = False

    def by_clock(self, now_ms: int) -> Signs:
        """Return the signs without instants that are still to come, those of a clock that was set
        back.
        """
        holding = {name: each.by_clock(now_ms) for name, each in self.holding.items()}
        gone = {name: min(at_ms, now_ms) for name, at_ms in self.gone.items()}
        return replace(self, holding=holding, gone=gone)

    def without(self, identities: Collection[str]) -> Signs:
        """Return the signs of all other alerts."""
        if not identities:
            return self
        return replace(
            self,
            holding={name: at for name, at in self.holding.items() if name not in identities},
            gone={name: at for name, at in self.gone.items() if name not in identities},
            ended={name: at for name, at in self.ended.items() if name not in identities},
        )


def still_holding(before: Collection[str], signs: Signs) -> set[str]:
    """Return the identities whose last sign is that the condition holds."""
    kept = set() if signs.is_full else set(before)
    return (kept - signs.gone.keys() - signs.ended.keys()) | signs.holding.keys()
