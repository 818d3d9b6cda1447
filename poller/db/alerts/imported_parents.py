"""The parents that an inventory file gives: checked by names before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.alerts import parent_rows
from poller.db.in_list import in_list
from poller.db.inventory.inventory_feed import Change
from poller.db.tables import devices
from poller.domain.alerts.topology import parent_chain
from poller.domain.inventory.draft import DeviceDraft, Problem


@dataclass(frozen=True, slots=True)
class ImportedParents:
    """The parents of a file beside the stored ones, all by names."""

    given: Mapping[str, str] = field(default_factory=dict)  # "" is none
    stored: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()  # names that are devices, stored or in the file
    together: Mapping[str, str] = field(default_factory=dict)  # as they would be
    going_round: frozenset[str] = frozenset()  # devices that would be above themselves

    def problems(self, device: str) -> Iterator[Problem]:
        """Yield what is wrong with the parent of one device of the file."""
        parent = self.given.get(device)
        if not parent:
            return
        if parent not in self.known:
            hint = "name a stored device, or one of this file"
            yield Problem("parent", f'no device named "{parent}"', hint)
            return
        if device in self.going_round:
            names = parent_chain.round_text(self.together, device)
            text = f"the chain of parents goes round: {names}"
            yield Problem("parent", text, "give one of them no parent")

    def changes(self, device: str) -> bool:
        """Whether the file changes the parent of a device."""
        given = self.given.get(device)
        return given is not None and given != self.stored.get(device, "")

    def pair(self, device: str) -> tuple[str, str]:
        """Return the stored parent of a device, and the one that the file gives."""
        return self.stored.get(device, ""), self.given.get(device, "")

    def store(self, change: Change) -> None:
        """Store the parents that differ. All devices of the file are stored already."""
        changed = {name: self.given[name] for name in self.given if self.changes(name)}
        ids = _ids(change.conn, {*changed, *changed.values()})
        gone = [ids[name] for name, parent in changed.items() if not parent]
        parent_rows.set_one(change, gone, "")
        wanted = {ids[name]: ids[parent] for name, parent in changed.items() if parent}
        parent_rows.set_many(change, wanted, parent_rows.IMPORT)


def read(conn: Connection, drafts: Iterable[DeviceDraft]) -> ImportedParents:
    """Return the parents of a file; nothing is read for a file that gives none."""
    names = set()
    given = {}
    for draft in drafts:
        names.add(draft.name)
        if draft.parent is not None:
            given[draft.name] = draft.parent
    if not given:
        return ImportedParents()
    elsewhere = set(given.values()) - names
    known = names | set(_ids(conn, elsewhere))
    stored = parent_rows.by_name(conn)
    merged = {**stored, **given}
    together = {name: parent for name, parent in merged.items() if parent}
    going_round = frozenset(parent_chain.going_round(together))
    return ImportedParents(given, stored, frozenset(known), together, going_round)


def _ids(conn: Connection, names: Iterable[str]) -> dict[str, int]:
    query = sa.select(devices.c.name, devices.c.id).where(in_list(devices.c.name, sorted(names)))
    return {name: device_id for name, device_id in conn.execute(query)}  # noqa: C416  typed
