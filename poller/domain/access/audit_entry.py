"""The entry of the audit log about one change. Secrets never get into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


def differing(
    action: str, subject: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> AuditEntry:
    """Return the entry of an edit, with the fields that differ."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return AuditEntry(
        action,
        subject,
        {key: before[key] for key in keys if key in before},
        {key: after[key] for key in keys if key in after},
    )
