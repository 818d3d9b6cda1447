"""What an import changes, device by device and field by field, in the words of an inventory file.

A digest stands for all of it: an import that names the digest of its preview changes exactly what
the preview showed, or nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple

from poller import errors

#: The columns that an import compares, and the names of their fields in a file.
_DEVICE_FIELDS = {
    "address": "address",
    "site_id": "site",
    "credential_id": "credential",
    "tags": "tags",
    "requires": "requires",
    "enabled": "enabled",
}
_TARGET_FIELDS = {
    "collector": "collector",
    "options": "options",
    "policy": "policy",
    "interval_ms": "interval",
    "min_ms": "min",
    "max_ms": "max",
    "staleness": "staleness",
    "timeout_ms": "timeout",
    "credential_id": "credential",
    "requires": "requires",
    "enabled": "enabled",
}


class FieldChange(NamedTuple):
    """One field before and after; `before` is None in a new row. Durations are in ms."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class RowChange:
    """A device, or one of its targets, that an import adds or changes."""

    device: str
    target: str  # "" for the device itself
    is_new: bool
    fields: Sequence[FieldChange]


@dataclass(slots=True)
class ImportChanges:
    """Collects what an import changes. `expected` is the digest of a preview; "" is any."""

    expected: str = ""
    rows: list[RowChange] = field(default_factory=list)
    _names: Mapping[str, Mapping[int | None, str]] = field(default_factory=dict)

    def name_references(
        self, site_ids: Mapping[str, int], credential_ids: Mapping[str, int]
    ) -> None:
        """Take over the names of what rows refer to."""
        self._names = {
            "site_id": {key: name for name, key in site_ids.items()},
            "credential_id": {key: name for name, key in credential_ids.items()},
        }

    def add_device(
        self,
        values: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        parent: tuple[str, str] | None,
    ) -> None:
        """Note a device that is written. `parent` is the one before and the one after."""
        fields = list(self._differing(_DEVICE_FIELDS, values, old))
        if parent is not None:
            fields.append(FieldChange("parent", None if old is None else parent[0], parent[1]))
        self.rows.append(RowChange(values["name"], "", old is None, fields))

    def add_target(
        self, device: str, values: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        """Note a target that is written."""
        fields = list(self._differing(_TARGET_FIELDS, values, old))
        self.rows.append(RowChange(device, values["name"], old is None, fields))

    def _differing(
        self, names: Mapping[str, str], values: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> Iterator[FieldChange]:
        for column, name in names.items():
            after = self._readable(column, values[column])
            before = None if old is None else self._readable(column, old[column])
            if before != after:
                yield FieldChange(name, before, after)

    def _readable(self, column: str, value: Any) -> Any:
        """Return a value with the name of what it refers to."""
        if column in self._names:
            return self._names[column].get(value, "")
        if isinstance(value, list | tuple):
            return list(value)
        return dict(value) if isinstance(value, Mapping) else value

    @property
    def digest(self) -> str:
        """Stands for all changes, whatever their order."""
        texts = sorted(json.dumps(astuple(row), sort_keys=True, default=str) for row in self.rows)
        return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()

    def refuse_others(self) -> None:
        """Raise EditConflict if these are not the changes of the preview."""
        if self.expected and self.expected != self.digest:
            raise errors.EditConflict(
                "what would be changed is not what the preview showed",
                "the inventory or the file was changed since",
                "look at the new preview, then import again",
            )
