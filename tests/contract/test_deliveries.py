"""The ledger of deliveries on every database: told once, sent in order, never lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.alerts.receivers.api import PART_ALERTS
from poller.alerts.receivers.registry import MadeReceiver
from poller.beat.alerts.telling.notice_maker import NoticeMaker
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts import delivery_listing, delivery_rows, notified_alerts
from poller.db.alerts.alert_tables import alert_changes, alert_tellings, deliveries
from poller.db.alerts.delivery_listing import DeliveryFilter
from poller.db.inventory import devices
from poller.domain.access.actor import Actor
from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import quiet_hours
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.delivery import Delivery, DeliveryState, NextStep
from poller.domain.alerts.telling.notice import Notice, NoticeKind, pack
from poller.domain.inventory import target_filter
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.service import command_actor
from tests.contract.stored_alerts import count, fire, resolve, store

NOW = 1_800_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
LEASE = 150 * SECOND
SENT = NextStep(DeliveryState.SENT, 0, is_event=False)
DEAD = NextStep(DeliveryState.DEAD, 0, is_event=True)


class Told:
    """A receiver that takes everything."""

    keeps_state = False

    def send(self, notice: Notice, key: str) -> str:
        return "taken"

    def close(self) -> None:
        """Nothing is open."""


class Kept(Told):
    """A receiver that keeps state, such as Alertmanager."""

    keeps_state = True


RECEIVERS = {
    name: MadeReceiver(name, name, kind(), 60_000)  # type: ignore[arg-type]
    for name, kind in {"mail": Told, "hook": Told, "am": Kept}.items()
}


def maker(engine: Engine, *routes: Route) -> NoticeMaker:
    return NoticeMaker(engine, routes or [Route("ops", ("mail", "hook"))], RECEIVERS)


def all_of(engine: Engine) -> list[Delivery]:
    """All deliveries, the oldest first."""
    return delivery_listing.page(engine, DeliveryFilter(), 100)[::-1]


def waiting(after_ms: int, attempts: int = 0) -> NextStep:
    return NextStep(DeliveryState.WAITING, after_ms, is_event=False)


def test_an_alert_becomes_one_delivery_for_each_receiver(engine: Engine) -> None:
    """Deliveries, what was told, and the history of the alert are one transaction."""
    alert = fire(engine, 1, NOW)
    notices = maker(engine)
    assert notices.make(NOW) == (0, NOW + 5 * SECOND)
    assert notices.make(NOW + 5 * SECOND)[0] == 1
    mail, hook = all_of(engine)
    assert (mail.receiver, hook.receiver) == ("mail", "hook")
    assert mail.key.partition(":")[0] == hook.key.partition(":")[0]
    assert [each.id for each in mail.notice.alerts] == [alert.id]
    assert mail.notice.group["site"] == "fra"
    assert notices.make(NOW + 10 * SECOND)[0] == 0
    with sql.single_read(engine) as conn:
        change = conn.execute(sa.select(alert_changes)).one()
    assert (change.alert_id, change.kind) == (alert.id, "told")
    assert change.text == "firing: route ops to mail, hook"


def test_the_next_leader_goes_on_where_the_last_one_ended(engine: Engine) -> None:
    """A new leader waits no second time, tells nothing twice, and tells the end."""
    alert = fire(engine, 1, NOW)
    assert maker(engine).make(NOW + 6 * SECOND)[0] == 1
    assert maker(engine).make(NOW + 7 * SECOND)[0] == 0
    resolve(engine, alert, NOW + 8 * SECOND)
    assert maker(engine).make(NOW + 13 * SECOND)[0] == 1
    assert maker(engine).make(NOW + 14 * SECOND)[0] == 0
    first, *_, last = all_of(engine)
    assert last.notice.kind is NoticeKind.RESOLVED
    assert last.notice.alerts[0].is_resolved
    assert last.notice.replies_to == (first.notice.key,)


def test_two_leaders_do_not_tell_twice(engine: Engine) -> None:
    """Of two that decide the same the second stores nothing."""
    fire(engine, 1, NOW)
    one, other = maker(engine), maker(engine)
    read = other._read(NOW + 6 * SECOND)
    plan = other._plan(read, NOW + 6 * SECOND)
    one.make(NOW + 6 * SECOND)
    made = other._made(plan.notices, NOW + 6 * SECOND)
    with pytest.raises(errors.StoreConflict):
        delivery_rows.make(engine, made, [], NOW + 6 * SECOND)
    assert count(engine, deliveries) == 2
    assert count(engine, alert_tellings) == 1


def test_an_alert_behind_another_is_told_when_it_comes_forward(engine: Engine) -> None:
    """A suppressed alert is told to nobody until nothing suppresses it; the notice says what else
    an alert stands for.
    """
    switch = fire(engine, 1, NOW)
    child = fire(engine, 2, NOW, suppressed_by=f"alert:{switch.id}")
    notices = maker(engine)
    notices.make(NOW + 6 * SECOND)
    assert [each.notice.alerts[0].folded for each in all_of(engine)] == [1, 1]
    store(engine, child, suppressed_by="")
    later = NOW + MINUTE
    assert notices.make(later)[0] == 0
    assert notices.make(later + 5 * SECOND)[0] == 1
    assert all_of(engine)[-1].notice.alerts[0].id == child.id


def test_an_end_during_a_silence_is_told(engine: Engine) -> None:
    """Whoever was told of the beginning is told of the end; nobody else."""
    told, silent = fire(engine, 1, NOW), fire(engine, 2, NOW, suppressed_by="maintenance:1")
    notices = maker(engine)
    notices.make(NOW + 6 * SECOND)
    for alert in (told, silent):
        resolve(engine, alert, NOW + 7 * SECOND, suppressed_by="maintenance:1")
    notices.make(NOW + 8 * SECOND)
    notices.make(NOW + 14 * SECOND)
    ends = [each for each in all_of(engine) if each.notice.kind is NoticeKind.RESOLVED]
    assert [each.notice.alerts[0].id for each in ends] == [told.id, told.id]


def test_an_end_that_nobody_told_for_an_hour_is_found(engine: Engine) -> None:
    """After an outage of all leaders the full look finds old ends."""
    alert = fire(engine, 1, NOW)
    maker(engine).make(NOW + 6 * SECOND)
    resolve(engine, alert, NOW + 7 * SECOND)
    assert maker(engine).make(NOW + 60 * MINUTE)[0] == 1


def test_a_short_alert_is_told_where_the_route_wants_it(engine: Engine) -> None:
    """An alert that ends within the wait of its group is one notice, and no second one."""
    resolve(engine, fire(engine, 1, NOW), NOW + SECOND)
    assert maker(engine).make(NOW + 10 * SECOND)[0] == 0
    eager = maker(engine, Route("ops", ("mail",), tell_short=True))
    assert eager.make(NOW + 10 * SECOND)[0] == 1
    assert eager.make(NOW + 20 * SECOND)[0] == 0


def test_a_route_takes_by_what_the_inventory_says(engine: Engine) -> None:
    """Tags and addresses of the device, and the collector of the target decide."""
    drafts = [TargetDraft(name="t", collector="snmp")]
    core = devices.add(engine, DeviceDraft("sw-1", "192.0.2.1", tags=("core",)), drafts)
    fire(engine, core.id, NOW)
    fire(engine, 999, NOW, subject=Subject(device_id=999, device="gone", site="fra"))
    routes = [
        Route("core", ("mail",), target_filter.parse("tag:core address:192.0.2.0/24")),
        Route("rest", ("hook",), otherwise=True),
    ]
    assert maker(engine, *routes).make(NOW + 6 * SECOND)[0] == 2
    told = {each.receiver: each.notice.alerts[0].device for each in all_of(engine)}
    assert told == {"mail": "sw-1", "hook": "gone"}


def test_a_receiver_that_keeps_state_gets_every_alert(engine: Engine) -> None:
    """A large notice is cut for people, and has parts for Alertmanager."""
    number = PART_ALERTS + 1
    for each in range(1, number + 1):
        fire(engine, each, NOW)
    maker(engine, Route("ops", ("mail", "am"))).make(NOW + 6 * SECOND)
    mail, first, second = all_of(engine)
    assert len(mail.notice.alerts) + mail.notice.more == number
    assert [len(each.notice.alerts) for each in (first, second)] == [PART_ALERTS, 1]
    assert first.key != second.key


def test_what_fires_is_sent_again_also_while_it_is_silenced(engine: Engine) -> None:
    """Alertmanager keeps what it was told until the end; it does not get what it was not told."""
    told = fire(engine, 1, NOW)
    fire(engine, 2, NOW, suppressed_by="paused")
    maker(engine, Route("ops", ("am",))).make(NOW + 6 * SECOND)
    store(engine, told, suppressed_by="maintenance:1")
    with sql.reading(engine) as conn:
        again = notified_alerts.told_firing(conn, ["ops"], [])
        escalated = notified_alerts.told_firing(conn, [], ["ops"])
    assert [alert.id for alert in again] == [told.id]
    assert escalated == []


def make_deliveries(engine: Engine, number: int) -> list[Delivery]:
    """Deliveries to `mail` of so many routes."""
    fire(engine, 1, NOW)
    routes = [Route(f"r{each}", ("mail",)) for each in range(number)]
    maker(engine, *routes).make(NOW + 6 * SECOND)
    return all_of(engine)


def take(engine: Engine, at_ms: int = NOW + 6 * SECOND, token: str = "a") -> Delivery | None:
    return delivery_rows.take(engine, "mail", token, at_ms, at_ms + LEASE)


def test_deliveries_go_in_their_order(engine: Engine) -> None:
    """A delivery that failed holds back later ones, until it has failed five times."""
    first, second = make_deliveries(engine, 2)
    later = NOW + 10 * SECOND
    for attempts in range(5):
        taken = take(engine, later)
        assert taken is not None
        assert (taken.id, taken.attempts) == (first.id, attempts)
        assert take(engine, later) is None
        delivery_rows.end_attempt(engine, taken, "a", waiting(later + SECOND), "away", later)
        assert (take(engine, later) is None) == (attempts < 4)
        later += SECOND
    # The last `take` above leased the second one.
    delivery_rows.free_leases(engine, "other")
    taken = take(engine, NOW + 10 * SECOND)
    assert taken is not None
    assert taken.id == second.id
    assert delivery_rows.end_attempt(engine, taken, "a", SENT, "200", later)
    delivery_rows.hurry(engine, "mail", later)
    assert delivery_rows.due_receivers(engine, later) == ({"mail"}, 0)


def test_an_end_does_not_pass_its_beginning(engine: Engine) -> None:
    """However often the beginning failed; what others are told of may pass."""
    alert = fire(engine, 1, NOW)
    notices = maker(engine, Route("ops", ("mail",), group_wait_ms=0))
    notices.make(NOW)
    resolve(engine, alert, NOW + SECOND)
    notices.make(NOW + SECOND)
    fire(engine, 2, NOW + 2 * SECOND)
    notices.make(NOW + 2 * SECOND)
    beginning, end, other = all_of(engine)
    later = NOW + HOUR
    for _ in range(5):
        taken = take(engine, NOW + 3 * SECOND)
        assert taken is not None
        assert taken.id == beginning.id
        step = waiting(NOW + 3 * SECOND)
        delivery_rows.end_attempt(engine, taken, "a", step, "away", NOW + 3 * SECOND)
    taken = take(engine, NOW + 3 * SECOND)
    assert taken is not None
    assert taken.id == beginning.id
    delivery_rows.end_attempt(engine, taken, "a", waiting(later), "away", NOW + 3 * SECOND)
    taken = take(engine, NOW + 4 * SECOND)
    assert taken is not None
    assert taken.id == other.id
    assert delivery_rows.end_attempt(engine, taken, "a", SENT, "200", NOW + 4 * SECOND)
    assert take(engine, NOW + 4 * SECOND) is None
    taken = take(engine, later)
    assert taken is not None
    assert delivery_rows.end_attempt(engine, taken, "a", SENT, "200", later)
    taken = take(engine, later)
    assert taken is not None
    assert taken.id == end.id


def test_what_is_read_of_an_alert_does_not_grow_with_its_repeats(engine: Engine) -> None:
    """After many repeats the next one is the next round, with the keys of the first."""
    alert = fire(engine, 1, NOW)
    notices = maker(engine, Route("ops", ("mail",), group_wait_ms=0, repeat_ms=MINUTE))
    for each in range(41):
        assert notices.make(NOW + each * MINUTE)[0] == 1
    with sql.reading(engine) as conn:
        found = notified_alerts.tellings(conn, [alert.id])
    assert len(found) <= 21
    assert max(each.round for each in found) == 40


def test_a_lease_ends_with_its_leader(engine: Engine) -> None:
    """A leased delivery is not taken twice; a new leader takes it at once, under the same key."""
    [made] = make_deliveries(engine, 1)
    taken = take(engine)
    assert taken is not None
    assert take(engine, token="b") is None
    assert delivery_rows.free_leases(engine, "b") == 1
    again = take(engine, token="b")
    assert again is not None
    assert again.key == taken.key == made.key
    assert not delivery_rows.end_attempt(engine, taken, "a", SENT, "late", NOW)
    assert delivery_rows.end_attempt(engine, again, "b", SENT, "200", NOW)
    assert take(engine, NOW + MINUTE) is None
    assert delivery_listing.one(engine, made.id).answer == "200"


def test_a_lease_runs_out(engine: Engine) -> None:
    """A delivery whose sender hangs can be taken when its lease is over."""
    make_deliveries(engine, 1)
    assert take(engine) is not None
    assert take(engine, NOW + 6 * SECOND + LEASE) is not None


def test_a_dead_delivery_is_retried_by_a_person(engine: Engine) -> None:
    """A retry is audited, counts from now, and keeps the key; others are refused as a whole."""
    first, second = make_deliveries(engine, 2)
    actor: Actor = command_actor.of_command()
    taken = take(engine)
    assert taken is not None
    delivery_rows.end_attempt(engine, taken, "a", DEAD, "550 no", NOW + 7 * SECOND)
    found = delivery_listing.counts(engine)["mail"]
    assert (found.waiting, found.dead, found.last_state) == (1, 1, "dead")
    assert found.last_answer == "550 no"

    with pytest.raises(errors.NotFound):
        delivery_listing.retry(engine, actor, [first.id, second.id], "", NOW)
    assert delivery_listing.one(engine, first.id).state is DeliveryState.DEAD
    assert delivery_listing.retry(engine, actor, (), "mail", NOW + MINUTE) == [first.id]
    again = delivery_listing.one(engine, first.id)
    assert (again.state, again.attempts, again.key) == (DeliveryState.WAITING, 0, first.key)
    [row] = audit_rows.listing(engine, audit_rows.AuditQuery("", "notification.retry", "", None, 9))
    assert (row.subject, row.count) == ("mail", 1)


def test_deliveries_are_listed_by_what_they_are(engine: Engine) -> None:
    """By state, route, receiver and alert; a page goes on before an id."""
    first = fire(engine, 1, NOW)
    fire(engine, 2, NOW, severity=Severity.INFO)
    maker(engine).make(NOW + 6 * SECOND)

    def ids(**wanted: object) -> list[int]:
        found = delivery_listing.page(engine, replace(DeliveryFilter(), **wanted), 10)  # type: ignore[arg-type]
        return [each.id for each in found]

    newest, *_, oldest = ids()
    assert len(ids()) == 4
    assert ids(before_id=oldest + 1) == [oldest]
    assert ids(state=DeliveryState.DEAD) == []
    assert ids(route="other") == []
    assert len(ids(receiver="hook")) == 2
    of_first = delivery_listing.page(engine, DeliveryFilter(alert_id=first.id), 10)
    assert sorted(each.receiver for each in of_first) == ["hook", "mail"]
    assert {alert.id for each in of_first for alert in each.notice.alerts} == {first.id}
    with pytest.raises(errors.NotFound):
        delivery_listing.one(engine, newest + 1)


def test_a_test_is_in_the_ledger_and_not_retried(engine: Engine) -> None:
    """The delivery of a test has ended when it is stored, and counts for no limit."""
    notice = Notice(key="k" * 40, kind=NoticeKind.TEST, route="ops", created_ms=NOW)
    made = delivery_rows.record_test(engine, "mail", notice, "550 no", is_sent=False)
    assert delivery_listing.one(engine, made).state is DeliveryState.DEAD
    assert delivery_rows.made_since(engine, 0) == {}
    assert delivery_listing.retry(engine, command_actor.of_command(), (), "mail", NOW) == []
    found = delivery_listing.counts(engine)["mail"]
    assert (found.dead, found.last_state, found.last_answer) == (0, "dead", "550 no")
    with pytest.raises(errors.InvalidInput, match="is a test") as refused:
        delivery_listing.retry(engine, command_actor.of_command(), [made], "", NOW)
    assert refused.value.hint == "another one: poller notify test ops"


def test_the_deliveries_of_an_alert_are_listed_however_often_it_was_told(engine: Engine) -> None:
    """An alert that fires for months was told more often than a query has room for conditions."""
    alert, other = fire(engine, 1, NOW), fire(engine, 2, NOW, severity=Severity.INFO)
    with sql.writing(engine) as conn:
        for number in range(1_100):
            of = other if number == 1_000 else alert
            key = conn.execute(deliveries.insert().values(delivery_values(number)))
            telling = {"alert_id": of.id, "route": "ops", "kind": "firing", "round": number}
            told = {**telling, "delivery_id": key.inserted_primary_key[0], "told_ms": NOW}
            conn.execute(alert_tellings.insert().values(told))
    found = delivery_listing.page(engine, DeliveryFilter(alert_id=alert.id), 2_000)
    assert len(found) == 1_099
    [one] = delivery_listing.page(engine, DeliveryFilter(alert_id=other.id), 2_000)
    assert one.key.startswith(f"{1000:040}")


def delivery_values(number: int) -> dict[str, object]:
    """The row of a delivery that was sent."""
    notice = Notice(key=f"{number:040}", kind=NoticeKind.FIRING, route="ops", created_ms=NOW)
    return {
        "key": f"{number:040}:mail",
        "route": "ops",
        "receiver": "mail",
        "kind": "firing",
        "group_key": "",
        "notice": pack(notice),
        "state": "sent",
        "attempts": 1,
        "due_ms": 0,
        "lease_until_ms": 0,
        "lease_token": "",
        "created_ms": NOW,
        "ended_ms": NOW,
        "answer": "ok",
    }


def test_an_end_that_quiet_hours_held_is_told_when_they_end(engine: Engine) -> None:
    """Also hours later, and without a wait for a full look."""
    hours = quiet_hours.parse(["22:00-09:00"], "UTC")  # NOW is 08:00
    alert = fire(engine, 1, NOW - 2 * HOUR, severity=Severity.WARNING)
    maker(engine).make(NOW - 2 * HOUR + 6 * SECOND)
    resolve(engine, alert, NOW - HOUR)
    quiet = maker(engine, Route("ops", ("mail",), quiet_hours=hours))
    for minute in range(59):
        assert quiet.make(NOW + minute * MINUTE)[0] == 0
    assert quiet.make(NOW + 59 * MINUTE + 59 * SECOND) == (0, NOW + HOUR)
    assert quiet.make(NOW + HOUR)[0] == 1


def test_what_waits_for_a_receiver_that_is_gone_is_closed(engine: Engine) -> None:
    """A delivery to a receiver that the settings no longer have is dead, with the reason."""
    [made] = make_deliveries(engine, 1)
    assert delivery_rows.close_unknown(engine, ["mail"], NOW) == 0
    assert delivery_rows.close_unknown(engine, ["hook"], NOW) == 1
    found = delivery_listing.one(engine, made.id)
    assert found.state is DeliveryState.DEAD
    assert "no receiver of this name" in found.answer
