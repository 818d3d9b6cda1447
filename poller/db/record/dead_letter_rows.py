"""Dead letters in SQL: which targets need a person, why, since when, and when they are tried again.

Workers write what they decide, in bulk, possibly late and twice: what happened later wins. The leader compares this
with the board now and then (beat/deadletter_sync.py), so whatever goes wrong on the way is mended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import Notify
from poller.db.tables import dead_letters, devices, sites, targets
from poller.domain.batched import batched
from poller.domain.failures.dead_letter import Letter, Reason

_FIELDS = tuple(column.name for column in dead_letters.columns)
_ROW = attrgetter(*(name if name != "reason" else "reason.value" for name in _FIELDS))
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Named:
    """A letter with the names of today."""

    letter: Letter
    device: str
    target: str
    collector: str
    site: str


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that most likely have one cause."""

    reason: str
    error_code: str
    collector: str
    letters: int
    devices: int
    first_ms: int  # first failure
    last_ms: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters somebody asks for; nothing said is every one. `ids` are of targets."""

    reason: str = ""
    code: str = ""
    collector: str = ""
    site: str = ""
    device: str = ""
    ids: Collection[int] | None = None


def write(engine: Engine, letters: Sequence[Letter]) -> None:
    """Store those with a reason, remove those without. Idempotent; what is older than the row is refused.

    Letters of targets that are gone or disabled are left out. Raises StoreError.
    """
    last: dict[int, Letter] = {}
    for letter in letters:
        if letter.target_id not in last or letter.last_ms >= last[letter.target_id].last_ms:
            last[letter.target_id] = letter
    made = [letter for _, letter in sorted(last.items()) if letter.reason]
    cleared = [letter for _, letter in sorted(last.items()) if not letter.reason]
    with sql.writing(engine) as conn:
        polled = _polled(conn, [letter.target_id for letter in made])
        bulk.insert(
            conn,
            dead_letters,
            [_ROW(letter) for letter in made if letter.target_id in polled],
            _UPSERT,
        )
        _clear(conn, cleared)


def _clear(conn: Connection, cleared: Sequence[Letter]) -> None:
    if not cleared:
        return
    stored = sa.select(dead_letters.c.target_id, dead_letters.c.last_ms)
    rows: dict[int, int] = dict(
        conn.execute(stored.where(among(dead_letters.c.target_id, _ids(cleared)))).all()
    )
    gone = [
        each.target_id for each in cleared if each.last_ms >= rows.get(each.target_id, each.last_ms)
    ]
    conn.execute(sa.delete(dead_letters).where(among(dead_letters.c.target_id, gone)))


def _polled(conn: Connection, ids: Sequence[int]) -> set[int]:
    """Those of these targets that are polled at all. They cannot be removed before we commit."""
    if not ids:
        return set()
    query = _POLLED.where(among(targets.c.id, ids)).order_by(targets.c.id)
    return set(conn.execute(query.with_for_update(key_share=True, read=True, of=targets)).scalars())


def forget_absent(engine: Engine) -> int:
    """Remove letters of targets that are gone or disabled. Returns how many."""
    absent = sa.delete(dead_letters).where(dead_letters.c.target_id.not_in(_POLLED))
    with sql.writing(engine) as conn:
        return conn.execute(absent).rowcount


def groups(engine: Engine, wanted: Wanted) -> list[Group]:
    """The largest first."""
    number = sa.func.count().label("number")
    key = (dead_letters.c.reason, dead_letters.c.error_code, targets.c.collector)
    facts = (number, sa.func.count(targets.c.device_id.distinct()))
    span = (sa.func.min(dead_letters.c.first_ms), sa.func.max(dead_letters.c.last_ms))
    query = sa.select(*key, *facts, *span).select_from(_JOINED).where(*_conditions(wanted))
    with sql.peeking(engine) as conn:
        rows = conn.execute(query.group_by(*key).order_by(number.desc(), *key))
        return [Group(*row) for row in rows]


def listing(engine: Engine, wanted: Wanted, limit: int | None = None) -> list[Named]:
    """The oldest first."""
    query = _NAMED.where(*_conditions(wanted)).order_by(
        dead_letters.c.parked_ms, dead_letters.c.target_id
    )
    with sql.peeking(engine) as conn:
        return [_named(row) for row in conn.execute(query.limit(limit))]


def count(engine: Engine, wanted: Wanted) -> int:
    query = sa.select(sa.func.count()).select_from(_JOINED).where(*_conditions(wanted))
    with sql.peeking(engine) as conn:
        return int(conn.execute(query).scalar_one())


def drop(engine: Engine, ids: Sequence[int], notify: Notify | None = None) -> int:
    """Stop trying: the targets are disabled and the letters removed, all or none. Returns how many."""
    dropped = 0
    with inventory_feed.change(engine, notify) as at:
        for chunk in batched(sorted(ids), _CHUNK):
            values = {"enabled": False, "version": at.version, "updated_at": at.now}
            done = at.conn.execute(
                sa.update(targets).where(among(targets.c.id, chunk)).values(values)
            )
            dropped += done.rowcount
            at.conn.execute(sa.delete(dead_letters).where(among(dead_letters.c.target_id, chunk)))
    return dropped


def page(engine: Engine, after: int, limit: int) -> list[tuple[int, int]]:
    """Target and last failure of every letter, in the order of targets: those behind this one."""
    query = sa.select(dead_letters.c.target_id, dead_letters.c.last_ms).order_by(
        dead_letters.c.target_id
    )
    with sql.peeking(engine) as conn:
        rows = conn.execute(query.where(dead_letters.c.target_id > after).limit(limit)).all()
    return [(int(key), int(last)) for key, last in rows]


def known(engine: Engine, ids: Collection[int]) -> set[int]:
    """Those of these targets that have a letter."""
    query = sa.select(dead_letters.c.target_id).where(among(dead_letters.c.target_id, ids))
    with sql.peeking(engine) as conn:
        return set(conn.execute(query).scalars())


def _ids(letters: Sequence[Letter]) -> list[int]:
    return [letter.target_id for letter in letters]


def _conditions(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    texts = {
        dead_letters.c.reason: wanted.reason,
        dead_letters.c.error_code: wanted.code,
        targets.c.collector: wanted.collector,
        sites.c.name: wanted.site,
        devices.c.name: wanted.device,
    }
    found = [column == text for column, text in texts.items() if text]
    return found if wanted.ids is None else [*found, among(dead_letters.c.target_id, wanted.ids)]


def _named(row: Any) -> Named:
    device, target, collector, site, *values = row
    fields = dict(zip(_FIELDS, values, strict=True))
    return Named(
        Letter(**{**fields, "reason": Reason(fields["reason"])}), device, target, collector, site
    )


_UPSERT = (
    "ON CONFLICT (target_id) DO UPDATE SET "
    + ", ".join(
        f"{name} = excluded.{name}" for name in _FIELDS if name not in ("target_id", "parked_ms")
    )
    # The board may have forgotten since when it is parked, the row does not.
    + " WHERE excluded.last_ms >= dead_letters.last_ms"
)

_POLLED = (
    sa.select(targets.c.id)
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
)

#: Only what is still polled: a letter of a target that was removed a moment ago is on its way out.
_JOINED = (
    dead_letters.join(targets, dead_letters.c.target_id == targets.c.id)
    .join(
        devices, sa.and_(targets.c.device_id == devices.c.id, targets.c.enabled, devices.c.enabled)
    )
    .outerjoin(sites, devices.c.site_id == sites.c.id)
)

_NAMED = sa.select(
    devices.c.name,
    targets.c.name,
    targets.c.collector,
    sa.func.coalesce(sites.c.name, ""),
    *dead_letters.c,
).select_from(_JOINED)
