"""The ledger of deliveries: made with what it tells in one transaction, leased, ended.

Every attempt holds a lease. A delivery whose leader died is sent again under the same key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

from poller.db import bulk
from poller.db import engine as sql
from poller.db.alerts.alert_tables import alert_changes, alert_tellings, deliveries
from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.telling import notice
from poller.domain.alerts.telling.delivery import (
    PATIENT_ATTEMPTS,
    Delivery,
    DeliveryState,
    NextStep,
    delivery_key,
)
from poller.domain.alerts.telling.notice import Notice
from poller.domain.failures import delivery_backoff

#: Waiting deliveries of one receiver that are looked at for the next one to send.
_LOOKED_AT = 50
_WAITING = deliveries.c.state == DeliveryState.WAITING.value


@dataclass(frozen=True, slots=True)
class NoticeForReceiver:
    """One delivery to be made. Parts of a large notice are deliveries of their own."""

    receiver: str
    notice: Notice


@dataclass(frozen=True, slots=True)
class MadeNotice:
    """A notice with its deliveries and with what it tells: alert id, kind, round."""

    route: str
    deliveries: Sequence[NoticeForReceiver]
    tellings: Sequence[tuple[int, str, int]]
    text: str  # for the history of each alert


def make(
    engine: Engine,
    made: Sequence[MadeNotice],
    untold_ends: Sequence[tuple[int, str]],
    now_ms: int,
) -> None:
    """Store notices and what they tell. Idempotent: raises StoreConflict if another leader was
    first with one of the tellings, and stores nothing then.
    """
    with sql.writing(engine) as conn:
        for each in made:
            ids = [_insert(conn, each.route, delivery, now_ms) for delivery in each.deliveries]
            _tell(conn, each, ids[0] if ids else 0, now_ms)
        rows = [(alert_id, route, "resolved", 0, 0, now_ms) for alert_id, route in untold_ends]
        bulk.insert(conn, alert_tellings, sorted(rows))


def _insert(conn: Connection, route: str, made: NoticeForReceiver, now_ms: int) -> int:
    values = {
        "key": delivery_key(made.notice.key, made.receiver),
        "route": route,
        "receiver": made.receiver,
        "kind": made.notice.kind.value,
        "group_key": " ".join(f"{name}={value}" for name, value in made.notice.group.items()),
        "notice": notice.pack(made.notice),
        "state": DeliveryState.WAITING.value,
        "attempts": 0,
        "due_ms": now_ms,
        "lease_until_ms": 0,
        "lease_token": "",
        "created_ms": now_ms,
        "ended_ms": 0,
        "answer": "",
    }
    key = conn.execute(deliveries.insert().values(values)).inserted_primary_key
    return int(key[0]) if key else 0


def _tell(conn: Connection, made: MadeNotice, delivery_id: int, now_ms: int) -> None:
    rows = [
        (alert_id, made.route, kind, number, delivery_id, now_ms)
        for alert_id, kind, number in made.tellings
    ]
    bulk.insert(conn, alert_tellings, sorted(rows))
    alert_ids = sorted({alert_id for alert_id, _, _ in made.tellings})
    changes = [(alert_id, now_ms, "told", made.text, "") for alert_id in alert_ids]
    columns = ("alert_id", "at_ms", "kind", "text", "actor")
    bulk.insert(conn, alert_changes, changes, columns=columns)


def made_since(engine: Engine, since_ms: int) -> dict[str, list[int]]:
    """When notices were made since an instant, by route. A notice to many receivers counts once."""
    query = (
        sa.select(deliveries.c.route, deliveries.c.key, deliveries.c.created_ms)
        .where(deliveries.c.created_ms >= since_ms, deliveries.c.kind != "test")
        .order_by(deliveries.c.created_ms)
    )
    with sql.single_read(engine) as conn:
        rows = conn.execute(query).all()
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        seen.setdefault((row.route, row.key.partition(":")[0]), row.created_ms)
    found: dict[str, list[int]] = {}
    for (route, _), at_ms in seen.items():
        found.setdefault(route, []).append(at_ms)
    return found


def due_receivers(engine: Engine, now_ms: int) -> tuple[set[str], int]:
    """The receivers with a delivery that is due, and when the next one of any is due (0: none)."""
    earliest = sa.func.min(deliveries.c.due_ms)
    query = (
        sa.select(deliveries.c.receiver, earliest.label("due_ms"))
        .where(_WAITING)
        .group_by(deliveries.c.receiver)
    )
    with sql.single_read(engine) as conn:
        rows = conn.execute(query).all()
    due = {row.receiver for row in rows if row.due_ms <= now_ms}
    later = [row.due_ms for row in rows if row.due_ms > now_ms]
    return due, min(later, default=0)


def take(
    engine: Engine, receiver: str, token: str, now_ms: int, lease_until_ms: int
) -> Delivery | None:
    """Lease the next delivery of a receiver that is due; None if there is none.

    Deliveries go in their order. One that failed several times lets later ones pass, but for the
    ends of its own alerts: a beginning that comes after its end would stay at the receiver.
    """
    with sql.writing(engine) as conn:
        query = (
            sa.select(deliveries)
            .where(_WAITING, deliveries.c.receiver == receiver)
            .order_by(deliveries.c.id)
            .limit(_LOOKED_AT)
        )
        row = _first_due(conn.execute(query).all(), now_ms)
        if row is None:
            return None
        lease = {"lease_token": token, "lease_until_ms": lease_until_ms}
        conn.execute(deliveries.update().where(deliveries.c.id == row.id).values(lease))
        return to_delivery(row)


def _first_due(rows: Sequence[Row[Any]], now_ms: int) -> Row[Any] | None:
    passed: set[int] = set()  # alerts of deliveries that let later ones pass
    for row in rows:
        told = row.notice["alerts"]
        ends = {each["id"] for each in told if each["state"] == AlertState.RESOLVED}
        is_early = not passed.isdisjoint(ends)
        is_free = row.lease_until_ms <= now_ms
        if is_free and row.due_ms <= now_ms and not is_early:
            return row
        if row.attempts < PATIENT_ATTEMPTS and not is_early:
            return None
        passed.update(each["id"] for each in told)
    return None


def end_attempt(
    engine: Engine, delivery: Delivery, token: str, step: NextStep, answer: str, now_ms: int
) -> bool:
    """Store how an attempt ended; False if the lease was lost meanwhile, which changes nothing."""
    is_mine = sa.and_(deliveries.c.id == delivery.id, _WAITING, deliveries.c.lease_token == token)
    is_over = step.state is not DeliveryState.WAITING
    values = {
        "state": step.state.value,
        "attempts": deliveries.c.attempts + 1,
        "due_ms": step.due_ms,
        "lease_until_ms": 0,
        "lease_token": "",
        "ended_ms": now_ms if is_over else 0,
        "answer": answer,
    }
    with sql.writing(engine) as conn:
        changed = conn.execute(deliveries.update().where(is_mine).values(values))
        return bool(changed.rowcount)


def hurry(engine: Engine, receiver: str, now_ms: int) -> None:
    """Let every waiting delivery of a receiver be due now: it answers again."""
    wanted = sa.and_(_WAITING, deliveries.c.receiver == receiver, deliveries.c.due_ms > now_ms)
    with sql.writing(engine) as conn:
        conn.execute(deliveries.update().where(wanted).values(due_ms=now_ms))


def bring_near(engine: Engine, now_ms: int) -> None:
    """Let every delivery be due now that is due later than any wait: by a clock that was ahead."""
    longest_ms = round(2000 * delivery_backoff.MOST_ASKED_S)
    wanted = sa.and_(_WAITING, deliveries.c.due_ms > now_ms + longest_ms)
    with sql.writing(engine) as conn:
        conn.execute(deliveries.update().where(wanted).values(due_ms=now_ms))


def free_leases(engine: Engine, token: str) -> int:
    """End the leases of earlier leaders, which are dead or do not lead. Returns how many."""
    held = sa.and_(_WAITING, deliveries.c.lease_until_ms > 0, deliveries.c.lease_token != token)
    with sql.writing(engine) as conn:
        freed = conn.execute(
            deliveries.update().where(held).values(lease_until_ms=0, lease_token="")
        )
        return int(freed.rowcount)


def close_unknown(engine: Engine, receivers: Collection[str], now_ms: int) -> int:
    """Let what waits for receivers that the settings no longer have be dead; returns how many."""
    unknown = sa.and_(_WAITING, deliveries.c.receiver.not_in(list(receivers)))
    values = {
        "state": DeliveryState.DEAD.value,
        "ended_ms": now_ms,
        "answer": "the settings of the leader have no receiver of this name",
    }
    with sql.writing(engine) as conn:
        return int(conn.execute(deliveries.update().where(unknown).values(values)).rowcount)


def record_test(engine: Engine, receiver: str, sent: Notice, answer: str, is_sent: bool) -> int:
    """Store the delivery of a test that was sent already; returns its id."""
    state = DeliveryState.SENT if is_sent else DeliveryState.DEAD
    with sql.writing(engine) as conn:
        made = _insert(conn, sent.route, NoticeForReceiver(receiver, sent), sent.created_ms)
        values: Mapping[str, Any] = {
            "state": state.value,
            "attempts": 1,
            "answer": answer,
            "ended_ms": sent.created_ms,
        }
        conn.execute(deliveries.update().where(deliveries.c.id == made).values(**values))
        return made


def to_delivery(row: Row[Any]) -> Delivery:
    """Return the delivery of a row."""
    return Delivery(
        id=row.id,
        key=row.key,
        route=row.route,
        receiver=row.receiver,
        notice=notice.unpack(row.notice),
        state=DeliveryState(row.state),
        attempts=row.attempts,
        due_ms=row.due_ms,
        created_ms=row.created_ms,
        ended_ms=row.ended_ms,
        answer=row.answer,
    )
