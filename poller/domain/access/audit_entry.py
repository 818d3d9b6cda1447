"""The entry of the audit log about one change. Secrets never get into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poller.domain.access import masked_fields

#: Names of changed things that one entry has; the number of all is in `count`.
MOST_NAMES = 1_000
#: Characters of these names together, so that the row keeps them.
_MOST_CHARACTERS = 12_000
#: Different old values of a field in the entry of a bulk change; others are counted together.
MOST_VALUES = 20
OTHER_VALUES = "(others)"
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action: what was done, to what, and the fields before and after that differ.

    `action` is a noun and a verb such as `device.edit`. `subject` is the name of the changed thing;
    an action on many names the filter and has `count` of them.
    """

    action: str
    subject: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1

    @property
    def is_nothing(self) -> bool:
        """Whether an edit changed nothing, which leaves no row."""
        return self.count == 0 and self.action.endswith(".edit")


def differing(
    action: str, subject: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> AuditEntry:
    """Return the entry of an edit, with the fields that differ; of none if its count is 0."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return AuditEntry(
        action,
        subject,
        {key: before[key] for key in keys if key in before},
        {key: after[key] for key in keys if key in after},
        count=1 if keys else 0,
    )


def bounded_names(names: Sequence[str]) -> list[str]:
    """Return the first names of changed things, so few that a row keeps them."""
    kept: list[str] = []
    room = _MOST_CHARACTERS
    for name in names[:MOST_NAMES]:
        room -= len(name) + 4  # the quotes, the comma and the blank of JSON
        if room < 0:
            break
        kept.append(name)
    return kept


def distribution(values: Iterable[tuple[Any, int]]) -> dict[str, int]:
    """Return how many of many changed things have each value, the most frequent first.

    The values are texts here, so secrets in them are masked before.
    """
    counted: Counter[str] = Counter()
    for value, number in values:
        counted[str(masked_fields.masked(value))[:_LONGEST_VALUE]] += number
    shown = dict(counted.most_common(MOST_VALUES))
    others = counted.total() - sum(shown.values())
    return {**shown, OTHER_VALUES: others} if others else shown
