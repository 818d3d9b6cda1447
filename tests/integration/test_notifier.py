"""The notifier with its threads: every receiver is told, whatever happens to another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from poller import bootstrap, errors
from poller.beat.alerts.telling.dead_man_switch import DeadManSwitch
from poller.beat.alerts.telling.notifier import Notifier
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.alerts import delivery_listing
from poller.db.alerts.alert_tables import deliveries
from poller.db.alerts.delivery_listing import DeliveryFilter
from poller.domain.alerts.telling.delivery import Delivery, DeliveryState
from poller.domain.record.event_kinds import Event, Kind
from poller.settings import load
from tests.contract.stored_alerts import fire, resolve
from tests.integration.alert_receivers import (
    Alertmanager,
    Mood,
    eventually,
    mail_server,
    secret_file,
    web,
)
from tests.integration.store_servers import free_port
from tests.integration.web_servers import saying, serving


class StandIn:
    """A leader as the notifier sees it."""

    def __init__(self) -> None:
        self.leads = True
        self.terms = 1


class Kept:
    """Events, kept for the test."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


class Telling:
    """A notifier with its leader and its events."""

    def __init__(self, services: Services) -> None:
        self.leader = StandIn()
        self.events = Kept()
        self.stopping = threading.Event()
        leader: Any = self.leader
        self.notifier = Notifier(services, leader, self.stopping, self.events)
        self.engine = services.engine

    def deliveries(self) -> list[Delivery]:
        return delivery_listing.page(self.engine, DeliveryFilter(), 100)[::-1]

    def states(self) -> dict[str, str]:
        """The state of the newest delivery to each receiver."""
        return {each.receiver: each.state.value for each in self.deliveries()}


@contextmanager
def telling(receivers: dict[str, Any], leads: bool = True, **options: Any) -> Iterator[Telling]:
    """A running notifier whose one route tells all receivers without a wait."""
    route = {"receivers": list(receivers), "group_wait": "0s", **options}
    changed = {"receiver": receivers, "route": {"ops": route}, "web_url": "https://p.example"}
    settings = load().model_copy(update=changed)
    made = Telling(Services(type(settings).model_validate(settings)))
    made.leader.leads = leads
    made.notifier.start()
    try:
        yield made
    finally:
        made.leader.leads = False
        made.stopping.set()
        made.notifier.wake()
        made.engine.dispose()


def hook(url: str) -> dict[str, Any]:
    """The table of one webhook."""
    return {"hook": {"kind": "webhook", "url": url}}


def now_ms() -> int:
    return database_clock.now_ms(bootstrap.services().engine)


def test_a_dead_receiver_delays_no_other(services: Services, tmp_path: Path) -> None:
    """Mail, webhook and Alertmanager are told while one receiver hangs and one is away."""
    am = Alertmanager(tmp_path / "am")
    am.start()
    with (
        web() as (url, mood),
        web(Mood(hangs=True)) as (stuck_url, _),
        mail_server() as (port, box),
    ):
        receivers = {
            "hangs": {"kind": "webhook", "url": stuck_url, "timeout_s": 20},
            "away": {"kind": "webhook", "url": f"http://127.0.0.1:{free_port()}/"},
            "hook": {"kind": "webhook", "url": url},
            "am": {"kind": "alertmanager", "url": am.url},
            "mail": {
                "kind": "email",
                "host": "127.0.0.1",
                "port": port,
                "security": "plain",
                "sender": "poller@example.net",
                "to": ["noc@example.net"],
            },
        }
        with telling(receivers) as told:
            alert = fire(services.engine, 1, now_ms())
            told.notifier.wake()
            eventually(lambda: mood.bodies and box.messages and "sw-1" in am.alerts())
            resolve(services.engine, alert, now_ms())
            told.notifier.wake()
            eventually(lambda: len(mood.bodies) == 2 and len(box.messages) == 2)
            eventually(lambda: "sw-1" not in am.alerts())
            states = [(each.receiver, each.state.value) for each in told.deliveries()]
    am.kill()
    assert [body["kind"] for body in mood.bodies] == ["firing", "resolved"]
    assert box.messages[1]["In-Reply-To"] == box.messages[0]["Message-ID"]
    assert states.count(("away", "waiting")) == states.count(("hangs", "waiting")) == 2
    assert states.count(("hook", "sent")) == states.count(("am", "sent")) == 2


def test_a_receiver_that_comes_back_gets_everything_in_order(services: Services) -> None:
    """What waited is sent once it answers again, the beginning before the end, each key once."""
    with web(Mood(status=500)) as (url, mood):
        with telling(hook(url)) as told:
            alert = fire(services.engine, 1, now_ms())
            told.notifier.wake()
            eventually(lambda: mood.bodies)
            resolve(services.engine, alert, now_ms())
            told.notifier.wake()
            eventually(lambda: len(told.deliveries()) == 2)
            mood.status = 200
            refused = len(mood.bodies)
            eventually(lambda: all(each.state == "sent" for each in told.deliveries()))
        assert refused <= 3
        kinds = [body["kind"] for body in mood.bodies]
        assert kinds == sorted(kinds)  # firing, then resolved
        assert [body["kind"] for body in mood.taken] == ["firing", "resolved"]


def test_a_refused_notice_is_dead_and_an_event(services: Services) -> None:
    """A notice that the receiver refuses for good does not hold up the next one."""
    with web(Mood(status=422)) as (url, mood), telling(hook(url)) as told:
        fire(services.engine, 1, now_ms())
        told.notifier.wake()
        eventually(lambda: told.events.events)
        mood.status = 200
        fire(services.engine, 2, now_ms())
        told.notifier.wake()
        eventually(lambda: told.states() == {"hook": "sent"})
        first, second = told.deliveries()
    [event] = told.events.events
    assert event.kind is Kind.NOTIFICATION_FAILED
    assert event.data["receiver"] == "hook"
    assert (first.state, second.state) == (DeliveryState.DEAD, DeliveryState.SENT)
    assert "422" in first.answer


def test_a_standby_takes_over_what_a_dead_leader_was_sending(services: Services) -> None:
    """The lease of a leader that hangs ends with its term, and the key stays the same."""
    with web(Mood(hangs=True)) as (url, mood):
        receivers = {"hook": {"kind": "webhook", "url": url, "timeout_s": 15}}
        with telling(receivers) as first:
            fire(services.engine, 1, now_ms())
            first.notifier.wake()
            eventually(lambda: _leased(services))
            first.leader.leads = False
            mood.hangs = False
            with telling(receivers) as second:
                eventually(lambda: second.states() == {"hook": "sent"})
            mood.free.set()
    assert len({body["key"] for body in mood.bodies}) == 1
    assert len(mood.taken) == 1


def test_a_clock_that_is_set_back_keeps_nobody_waiting(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited for another attempt a day ahead is sent, and what fires now is told now."""
    day_ms = 86_400_000
    ahead_ms = [day_ms]
    right = database_clock.now_ms
    monkeypatch.setattr(database_clock, "now_ms", lambda engine: right(engine) + ahead_ms[0])
    with web(Mood(status=500)) as (url, mood), telling(hook(url), per_minute=1) as told:
        fire(services.engine, 1, now_ms())
        told.notifier.wake()
        eventually(lambda: told.deliveries() and told.deliveries()[0].attempts)
        ahead_ms[0] = 0
        mood.status = 200
        fire(services.engine, 2, now_ms())
        told.notifier.wake()
        eventually(lambda: [each.state for each in told.deliveries()] == ["sent", "sent"])
    assert [body["alerts"][0]["device"] for body in mood.taken] == ["sw-1", "sw-2"]


def _leased(services: Services) -> bool:
    with sql.single_read(services.engine) as conn:
        found = conn.execute(sa.select(deliveries.c.lease_until_ms)).scalars()
        return any(found)


def test_alertmanager_gets_again_what_it_forgot(services: Services, tmp_path: Path) -> None:
    """An Alertmanager that lost everything has all that fires within its resend time."""
    am = Alertmanager(tmp_path / "am")
    am.start()
    try:
        receivers = {"am": {"kind": "alertmanager", "url": am.url, "resend_s": 1}}
        with telling(receivers) as told:
            fire(services.engine, 1, now_ms())
            told.notifier.wake()
            eventually(lambda: "sw-1" in am.alerts())
            am.kill()
            am.directory = tmp_path / "empty"
            am.directory.mkdir()
            am.start()
            eventually(lambda: "sw-1" in am.alerts())
            assert len(told.deliveries()) == 1
    finally:
        am.kill()


def test_a_notifier_that_does_not_lead_tells_nobody(services: Services) -> None:
    """A standby makes no notice and sends none."""
    with (
        web() as (url, mood),
        telling(hook(url), leads=False) as told,
    ):
        fire(services.engine, 1, now_ms())
        told.notifier.wake()
        time.sleep(0.5)  # the thing that must not happen has no sign to wait for
        assert told.deliveries() == []
    assert mood.bodies == []


def test_wrong_settings_end_the_start(services: Services) -> None:
    """A notifier is not made with a receiver of an unknown kind or with a missing secret."""
    for table, named in (
        ({"kind": "webhok", "url": "http://127.0.0.1:1/"}, "did you mean webhook"),
        ({"kind": "webhook", "url": "http://127.0.0.1:1/", "secret_file": "/no/file"}, "scheduler"),
    ):
        with pytest.raises(errors.InvalidSetting) as raised, telling({"ops": table}):
            pass
        assert raised.value.message.startswith("[receiver.ops]")
        assert named in raised.value.hint


def test_the_dead_mans_switch_is_pressed_while_the_platform_works(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL is requested; its failure is told without the URL; a dead database ends it."""
    with serving(saying("HTTP/1.1 200 OK", b"OK")) as server:
        url = f"http://127.0.0.1:{server.port}/ping/s3cret-uuid"
        switch = _switch(url, monkeypatch)
        assert switch.request_if_working() == ""
        assert server.requests[0].startswith(b"GET /ping/s3cret-uuid ")
    failure = switch.request_if_working()
    assert failure
    assert "s3cret" not in failure

    with serving(saying("HTTP/1.1 200 OK")) as server:
        switch = _switch(f"http://127.0.0.1:{server.port}/s3cret", monkeypatch)
        bootstrap.services().engine.dispose()
        (bootstrap.services().settings.home / "poller.db").unlink()
        assert "database" in switch.request_if_working()
        assert server.requests == []
    assert "s3cret" not in secret_file(tmp_path, "")


def _switch(url: str, monkeypatch: pytest.MonkeyPatch) -> DeadManSwitch:
    monkeypatch.setenv("POLLER_HEARTBEAT_URL", url)
    bootstrap.services.cache_clear()
    leader: Any = StandIn()
    return DeadManSwitch(bootstrap.services(), leader, threading.Event())
