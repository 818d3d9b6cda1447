"""Deliveries for people: pages of the ledger, counts by receiver, and the retry of dead ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts.alert_tables import alert_tellings, deliveries
from poller.db.alerts.delivery_rows import to_delivery
from poller.db.in_list import in_list
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.telling.delivery import Delivery, DeliveryState, notice_key
from poller.domain.alerts.telling.notice import KEY_LENGTH, NoticeKind

_DEAD = deliveries.c.state == DeliveryState.DEAD.value
_IS_TEST = deliveries.c.kind == NoticeKind.TEST.value


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Selects deliveries; an empty field selects all. `before_id` is the page after that row."""

    state: DeliveryState | None = None
    route: str = ""
    receiver: str = ""
    alert_id: int | None = None
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class ReceiverCounts:
    """The deliveries of a receiver: how many wait and are dead, and how the last one ended."""

    waiting: int = 0
    dead: int = 0
    oldest_waiting_ms: int = 0
    last_state: str = ""
    last_ms: int = 0
    last_answer: str = ""


def page(engine: Engine, wanted: DeliveryFilter, limit: int) -> list[Delivery]:
    """The newest deliveries first."""
    query = sa.select(deliveries).order_by(deliveries.c.id.desc()).limit(limit)
    if wanted.state is not None:
        query = query.where(deliveries.c.state == wanted.state.value)
    if wanted.route:
        query = query.where(deliveries.c.route == wanted.route)
    if wanted.receiver:
        query = query.where(deliveries.c.receiver == wanted.receiver)
    if wanted.before_id is not None:
        query = query.where(deliveries.c.id < wanted.before_id)
    with sql.reading(engine) as conn:
        if wanted.alert_id is not None:
            query = query.where(_of_alert(conn, wanted.alert_id))
        return [to_delivery(row) for row in conn.execute(query)]


def _of_alert(conn: Connection, alert_id: int) -> sa.ColumnElement[bool]:
    """The deliveries to all receivers of each notice that told of the alert."""
    query = (
        sa.select(deliveries.c.key)
        .join(alert_tellings, alert_tellings.c.delivery_id == deliveries.c.id)
        .where(alert_tellings.c.alert_id == alert_id)
    )
    keys = sorted({notice_key(row.key)[:KEY_LENGTH] for row in conn.execute(query)})
    return in_list(sa.func.substr(deliveries.c.key, 1, KEY_LENGTH), keys)


def one(engine: Engine, delivery_id: int) -> Delivery:
    """Return one delivery. Raises NotFound."""
    query = sa.select(deliveries).where(deliveries.c.id == delivery_id)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).first()
    if row is None:
        raise errors.NotFound(
            f"there is no delivery {delivery_id}", hint="poller notify deliveries"
        )
    return to_delivery(row)


def counts(engine: Engine) -> dict[str, ReceiverCounts]:
    """The counts of each receiver that has deliveries. A test that failed is not counted as dead:
    nobody can retry it.
    """
    state, receiver = deliveries.c.state, deliveries.c.receiver
    of_states = sa.select(
        receiver,
        state,
        sa.func.count().label("number"),
        sa.func.min(deliveries.c.created_ms).label("oldest_ms"),
    ).where(state != DeliveryState.SENT.value, ~_IS_TEST)
    newest = (
        sa.select(sa.func.max(deliveries.c.id).label("id"))
        .where(state != DeliveryState.WAITING.value)
        .group_by(receiver)
        .subquery()
    )
    of_last = sa.select(receiver, state, deliveries.c.ended_ms, deliveries.c.answer).join(
        newest, newest.c.id == deliveries.c.id
    )
    with sql.reading(engine) as conn:
        rows = conn.execute(of_states.group_by(receiver, state)).all()
        last = {row.receiver: row for row in conn.execute(of_last)}
    found = {}
    for name in {row.receiver for row in rows} | set(last):
        own = {row.state: row for row in rows if row.receiver == name}
        waiting = own.get(DeliveryState.WAITING.value)
        dead = own.get(DeliveryState.DEAD.value)
        ended = last.get(name)
        found[name] = ReceiverCounts(
            waiting=waiting.number if waiting else 0,
            dead=dead.number if dead else 0,
            oldest_waiting_ms=waiting.oldest_ms if waiting else 0,
            last_state=ended.state if ended else "",
            last_ms=ended.ended_ms if ended else 0,
            last_answer=ended.answer if ended else "",
        )
    return found


def retry(
    engine: Engine,
    actor: Actor,
    ids: Collection[int],
    receiver: str,
    now_ms: int,
) -> list[int]:
    """Let dead deliveries wait for another attempt, by id or all of a receiver; returns their ids.

    Their time counts from now. Raises NotFound if one of the ids is no dead delivery; nothing
    changes then. Raises StoreError.
    """
    chosen = in_list(deliveries.c.id, ids) if ids else deliveries.c.receiver == receiver
    with sql.writing(engine) as conn:
        query = sa.select(deliveries.c.id).where(_DEAD, ~_IS_TEST, chosen)
        found = sorted(row.id for row in conn.execute(query))
        _refuse_others(conn, set(ids) - set(found))
        values = {
            "state": DeliveryState.WAITING.value,
            "attempts": 0,
            "due_ms": now_ms,
            "created_ms": now_ms,
            "ended_ms": 0,
        }
        wanted = sa.and_(_DEAD, in_list(deliveries.c.id, found))
        conn.execute(deliveries.update().where(wanted).values(values))
        if found:
            subject = receiver or ",".join(map(str, found[:10]))
            entry = AuditEntry("notification.retry", subject, count=len(found))
            audit_rows.append(conn, actor, [entry], database_clock.read_ms(conn))
        return found


def _refuse_others(conn: Connection, ids: Collection[int]) -> None:
    query = sa.select(deliveries.c.id, deliveries.c.route).where(in_list(deliveries.c.id, ids))
    for row in conn.execute(query.where(_IS_TEST).order_by(deliveries.c.id)):
        raise errors.InvalidInput(
            f"delivery {row.id} is a test, and tests are not tried again",
            hint=f"another one: poller notify test {row.route}",
            field="ids",
        )
    if ids:
        named = ", ".join(map(str, sorted(ids)[:10]))
        raise errors.NotFound(
            f"no dead delivery has the id {named}", hint="poller notify deliveries --state dead"
        )
