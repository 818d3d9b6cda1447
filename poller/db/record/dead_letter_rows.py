"""Dead letters in SQL: targets that need a person, with reason, times and number of attempts.

Workers write in bulk, possibly late and twice; the later failure wins. The leader compares the
table with the board (beat/deadletter_sync.py) and corrects differences.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import dead_letters, devices, sites, targets
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.batched import batched
from poller.domain.failures.dead_letter import Letter, Reason

_FIELDS = tuple(column.name for column in dead_letters.columns)
_ROW = attrgetter(*(name if name != "reason" else "reason.value" for name in _FIELDS))
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Named:
    """A letter with the present names of its target."""

    letter: Letter
    device: str
    target: str
    collector: str
    site: str
    device_id: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter for letters: an empty field matches every letter. `ids` are ids of targets; `site`
    is the one site whose letters are wanted; `message` is the whole text of the error.
    """

    reason: str = ""
    codes: Collection[str] = ()
    collector: str = ""
    ids: Collection[int] | None = None
    site: str | None = None
    message: str = ""


def write(engine: Engine, letters: Sequence[Letter]) -> None:
    """Store letters with a reason, remove those without. Idempotent; an older letter changes
    nothing.

    Letters of removed or disabled targets are left out. Raises StoreError.
    """
    newest = _newest(letters)
    made = [letter for letter in newest if letter.reason]
    cleared = [letter for letter in newest if not letter.reason]
    with sql.writing(engine) as conn:
        polled = _polled(conn, [letter.target_id for letter in made])
        rows = [_ROW(letter) for letter in made if letter.target_id in polled]
        bulk.insert(conn, dead_letters, rows, _UPSERT)
        _clear(conn, cleared)


def _newest(letters: Sequence[Letter]) -> list[Letter]:
    """Return the newest letter of each target, in the order of targets."""
    newest: dict[int, Letter] = {}
    for letter in letters:
        other = newest.get(letter.target_id)
        if other is None or letter.last_ms >= other.last_ms:
            newest[letter.target_id] = letter
    return [newest[target_id] for target_id in sorted(newest)]


def _clear(conn: Connection, cleared: Sequence[Letter]) -> None:
    if not cleared:
        return
    ids = [letter.target_id for letter in cleared]
    query = sa.select(dead_letters.c.target_id, dead_letters.c.last_ms)
    stored = conn.execute(query.where(in_list(dead_letters.c.target_id, ids))).all()
    stored_ms: dict[int, int] = dict(stored)
    outdated = [
        letter.target_id
        for letter in cleared
        if letter.last_ms >= stored_ms.get(letter.target_id, letter.last_ms)
    ]
    conn.execute(sa.delete(dead_letters).where(in_list(dead_letters.c.target_id, outdated)))


def _polled(conn: Connection, ids: Sequence[int]) -> set[int]:
    """Return the enabled ones of these targets, locked against removal until the commit."""
    if not ids:
        return set()
    query = _POLLED.where(in_list(targets.c.id, ids)).order_by(targets.c.id)
    locked = query.with_for_update(key_share=True, read=True, of=targets)
    return set(conn.execute(locked).scalars())


def forget_absent(engine: Engine) -> int:
    """Remove letters of removed and disabled targets. Returns how many."""
    absent = sa.delete(dead_letters).where(dead_letters.c.target_id.not_in(_POLLED))
    with sql.writing(engine) as conn:
        return conn.execute(absent).rowcount


def listing(
    engine: Engine,
    wanted: Wanted,
    limit: int | None = None,
    after: tuple[int, int] | None = None,
) -> list[Named]:
    """Return letters, the oldest first, from the one after `after` (parked, target) on."""
    key = (dead_letters.c.parked_ms, dead_letters.c.target_id)
    query = _NAMED.where(*conditions(wanted)).order_by(*key)
    if after is not None:
        query = query.where(sa.tuple_(*key) > sa.tuple_(*after))
    with sql.single_read(engine) as conn:
        return [_named(row) for row in conn.execute(query.limit(limit))]


def newest(engine: Engine, limit: int) -> list[Named]:
    """Return the letters that were parked last, the newest first."""
    # Some may be of targets that were disabled a moment ago; the index is read no further.
    newest_ids = (
        sa.select(dead_letters.c.target_id)
        .order_by(dead_letters.c.parked_ms.desc())
        .limit(2 * limit)
    )
    query = _NAMED.where(dead_letters.c.target_id.in_(newest_ids))
    ordered = query.order_by(dead_letters.c.parked_ms.desc(), dead_letters.c.target_id)
    with sql.single_read(engine) as conn:
        return [_named(row) for row in conn.execute(ordered.limit(limit))]


def of_targets(engine: Engine, ids: Collection[int]) -> dict[int, Letter]:
    """Return the letters of these targets."""
    query = sa.select(dead_letters).where(in_list(dead_letters.c.target_id, ids))
    with sql.single_read(engine) as conn:
        return {row.target_id: _letter(row) for row in conn.execute(query)}


def count(engine: Engine, wanted: Wanted) -> int:
    query = sa.select(sa.func.count()).select_from(JOINED).where(*conditions(wanted))
    with sql.single_read(engine) as conn:
        return int(conn.execute(query).scalar_one())


def drop(
    engine: Engine,
    ids: Sequence[int],
    author: Author = NOBODY,
    entry: AuditEntry | None = None,
) -> int:
    """Disable the targets that still have a letter and remove the letters, all or none.

    A target may have recovered since its letter was listed. The audit entry gets the number of
    those that were disabled. Returns that number.
    """
    dropped = 0
    with inventory_feed.change(engine, author) as change:
        values = {"enabled": False, "version": change.version, "updated_at": change.now}
        for chunk in batched(sorted(ids), _CHUNK):
            letters = in_list(dead_letters.c.target_id, chunk)
            lettered = sa.select(dead_letters.c.target_id).where(letters)
            disable = sa.update(targets).where(targets.c.id.in_(lettered)).values(values)
            dropped += change.conn.execute(disable).rowcount
            change.conn.execute(sa.delete(dead_letters).where(letters))
        if entry is not None and dropped:
            change.record(replace(entry, count=dropped))
    return dropped


def page(engine: Engine, after: int, limit: int) -> list[tuple[int, int]]:
    """Return (target, last failure) of letters in the order of targets, from the one after `after`
    on.
    """
    query = sa.select(dead_letters.c.target_id, dead_letters.c.last_ms).order_by(
        dead_letters.c.target_id
    )
    with sql.single_read(engine) as conn:
        rows = conn.execute(query.where(dead_letters.c.target_id > after).limit(limit)).all()
    return [(int(key), int(last)) for key, last in rows]


def known(engine: Engine, ids: Collection[int]) -> set[int]:
    """Return the ones of these targets that have a letter."""
    query = sa.select(dead_letters.c.target_id).where(in_list(dead_letters.c.target_id, ids))
    with sql.single_read(engine) as conn:
        return set(conn.execute(query).scalars())


def conditions(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of a filter on `JOINED`."""
    texts = {
        dead_letters.c.reason: wanted.reason,
        dead_letters.c.message: wanted.message,
        targets.c.collector: wanted.collector,
    }
    found = [column == text for column, text in texts.items() if text]
    if wanted.codes:
        found.append(in_list(dead_letters.c.error_code, wanted.codes))
    if wanted.ids is not None:
        found.append(in_list(dead_letters.c.target_id, wanted.ids))
    if wanted.site is not None:
        found.append(site_name == wanted.site)
    return found


def _letter(row: Any) -> Letter:
    fields = {name: row._mapping[name] for name in _FIELDS}
    fields["reason"] = Reason(fields["reason"])
    return Letter(**fields)


def _named(row: Any) -> Named:
    return Named(
        letter=_letter(row),
        device=row.device,
        target=row.target,
        collector=row.collector,
        site=row.site,
        device_id=row.device_id,
    )


_UPSERT = (
    "ON CONFLICT (target_id) DO UPDATE SET "
    + ", ".join(
        f"{name} = excluded.{name}" for name in _FIELDS if name not in ("target_id", "parked_ms")
    )
    # `parked_ms` stays: a rebuilt board no longer knows it, the row does.
    + " WHERE excluded.last_ms >= dead_letters.last_ms"
)

_POLLED = (
    sa.select(targets.c.id)
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
)

#: The name of the site of a letter; empty for none.
#: A parameter instead of the literal would be another expression for PostgreSQL each time.
site_name = sa.func.coalesce(sites.c.name, sa.literal_column("''"))

#: Letters of enabled targets only: `forget_absent` is about to remove the others.
JOINED = (
    dead_letters.join(targets, dead_letters.c.target_id == targets.c.id)
    .join(
        devices, sa.and_(targets.c.device_id == devices.c.id, targets.c.enabled, devices.c.enabled)
    )
    .outerjoin(sites, devices.c.site_id == sites.c.id)
)

_NAMED = sa.select(
    devices.c.name.label("device"),
    targets.c.name.label("target"),
    targets.c.collector,
    site_name.label("site"),
    targets.c.device_id,
    *dead_letters.c,
).select_from(JOINED)
