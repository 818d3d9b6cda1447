"""The keeper on a real board and a real database: what the board shows becomes alerts in SQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.beat import reconcile
from poller.beat.alerts import stale_targets
from poller.beat.alerts.alert_keeper import AlertKeeper
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db import migrate
from poller.db.alerts import alert_row, alert_rows, rule_rows
from poller.db.alerts.alert_rows import AlertWriter, TermOver
from poller.db.alerts.alert_tables import alerts, device_parents
from poller.db.inventory import devices as device_rows
from poller.db.inventory import imports
from poller.db.tables import devices, targets
from poller.domain.alerts import mark
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import (
    Condition,
    DeviceUnreachable,
    NoData,
    PlatformProblem,
    PlatformTrouble,
    Rule,
    Severity,
    SiteDark,
    TargetFailing,
    Threshold,
)
from poller.domain.failures.site_outage import Outage
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.settings import Settings
from poller.state.board.alert_levels import AlertLevels
from poller.state.cluster import event_stream, site_windows
from tests.integration.access_sites import KIM
from tests.integration.boards import QUEUE

RULES = (
    Rule("device-unreachable", DeviceUnreachable(), Severity.CRITICAL),
    Rule("site-dark", SiteDark(), Severity.CRITICAL),
    Rule("target-failing", TargetFailing()),
    Rule("no-data", NoData(10.0)),
    Rule("load", Threshold("load", above=5.0), text="{device} {series}: {value} {label:ifAlias}"),
)

NO_LEADER = PlatformTrouble(PlatformProblem.NO_LEADER)


class World:
    """Four devices of site `ams`: `child` and `twin` behind `switch`, and `lone`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.board, self.redis, self.keys = services.board, services.redis, services.keys
        self.leader = Leader(services.leadership, 1.0, election=False)
        self.leader.try_to_lead()
        draft = TargetDraft("snmp", "snmp", {}, interval_ms=60_000, timeout_ms=5_000)
        names = ("switch", "child", "twin", "lone")
        rows = [imports.Row(DeviceDraft(name, "127.0.0.1", site="ams"), [draft]) for name in names]
        imports.apply_import(services.engine, rows)
        self.now = self.board.now_ms()
        reconcile.reconcile(self.board, services.engine, "", self.now)
        with sql.writing(services.engine) as conn:
            joined = sa.select(devices.c.name, devices.c.id, targets.c.id.label("target_id"))
            found = conn.execute(joined.join(targets, targets.c.device_id == devices.c.id))
            both = {row.name: (row.id, row.target_id) for row in found}
            self.device = {name: ids[0] for name, ids in both.items()}
            self.target = {name: ids[1] for name, ids in both.items()}
            for child in ("child", "twin"):
                conn.execute(
                    sa.insert(device_parents).values(
                        device_id=self.device[child],
                        parent_id=self.device["switch"],
                        source="hand",
                    )
                )
        self.rules = {rule.name: rule for rule in store_rules(services, RULES)}
        self.keeper = self.new_keeper()
        for name in names:
            self.answers(name)
        self.keeper.check(self.now)

    def new_keeper(self) -> AlertKeeper:
        return AlertKeeper(self.services, self.leader, threading.Event())

    def status(self, name: str, state: State, code: str = "", **more: int) -> None:
        ok_ms = self.now if state is State.OK else 1
        instants = {"since_ms": self.now, "finished_ms": self.now, "ok_ms": ok_ms, **more}
        if state is State.OK:
            self.redis.zrem(self.keys.unwell, self.target[name])
        made = Status(state, code=code, confirmed=state is State.FAILING, **instants)
        self.redis.hset(self.keys.status, str(self.target[name]), made.pack())

    def news(self, kind: str, number: int) -> None:
        self.redis.zadd(self.keys.alert_news, {f"{kind}{number}": self.now})

    def goes_down(self, name: str) -> None:
        self.status(name, State.FAILING, "timeout")
        device, target = self.device[name], self.target[name]
        self.redis.hset(self.keys.down, str(device), f"{self.now}|{target}")
        self.news("d", device)

    def answers(self, name: str) -> None:
        self.status(name, State.OK)
        if self.redis.hdel(self.keys.down, str(self.device[name])):
            self.news("d", self.device[name])

    def marked(self, name: str, *marks: Mark) -> None:
        target = str(self.target[name])
        self.status(name, State.OK)
        if marks:
            self.redis.hset(self.keys.marks, target, mark.pack(marks))
        else:
            self.redis.hdel(self.keys.marks, target)
        self.news("t", self.target[name])

    def load(self, series: str = "cpu=1") -> Mark:
        labels = {"ifAlias": "Uplink"}
        return Mark(self.rules["load"].id, series, self.now, self.now, 9.5, labels)

    def step(self, seconds: float = 1.0, full: bool = False) -> None:
        self.now += round(seconds * 1000)
        if full:
            self.keeper.look_soon()
        self.keeper.check(self.now)

    def open(self) -> dict[str, Alert]:
        found = alert_rows.open_alerts(self.services.engine)
        return {f"{each.rule} {each.subject.device or each.subject.site}": each for each in found}

    def loud(self) -> list[str]:
        return sorted(
            name
            for name, alert in self.open().items()
            if alert.state is AlertState.FIRING and not alert.suppressed_by
        )

    def all(self) -> list[Alert]:
        with sql.single_read(self.services.engine) as conn:
            rows = conn.execute(sa.select(alerts).order_by(alerts.c.id))
            return [alert_row.to_alert(row) for row in rows]

    def urgent(self) -> set[int]:
        return {int(each) for each in self.redis.zrange(self.keys.urgent(QUEUE), 0, -1)}

    def events(self, kind: Kind) -> list[str]:
        entries = event_stream.after(self.redis, self.keys, event_stream.BEGINNING, 1000, 0)
        return [each.event.message for each in entries if each.event and each.event.kind is kind]


def store_rules(services: Services, wanted: Sequence[Rule]) -> tuple[Rule, ...]:
    """Store these rules, in place of built-in ones of the same name, and return all."""
    engine = services.engine
    for name in [each.name for each in rule_rows.load(engine).rules]:
        rule_rows.enable(engine, [name], False, KIM)
    known = {each.name for each in rule_rows.load(engine).rules}
    for rule in wanted:
        if rule.name in known:
            rule_rows.edit(engine, rule.name, rule, KIM)
        else:
            rule_rows.add(engine, rule, KIM)
    return rule_rows.load(engine).rules


@pytest.fixture
def world(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = Services(Settings())
    migrate.upgrade(services.engine)
    yield World(services)
    services.engine.dispose()


def test_a_device_that_goes_down_and_comes_back_is_one_alert(world: World) -> None:
    """It fires at its first news and ends with the answer of the device, an event each."""
    world.goes_down("lone")
    world.step()
    assert world.loud() == ["device-unreachable lone"]
    world.step(60, full=True)
    world.answers("lone")
    world.step()
    assert world.open() == {}
    [alert] = world.all()
    assert (alert.state, alert.severity) == (AlertState.RESOLVED, Severity.CRITICAL)
    assert alert.text == "lone is unreachable"
    [fired] = world.events(Kind.ALERT_FIRED)
    [ended] = world.events(Kind.ALERT_RESOLVED)
    assert fired == "device-unreachable: lone is unreachable"
    assert ended.startswith("device-unreachable: lone is unreachable: over after")


def test_a_device_without_a_sign_and_without_an_answer_stays_down(world: World) -> None:
    """The record of the board may be lost; only an answer ends the alert."""
    world.goes_down("lone")
    world.step()
    world.redis.delete(world.keys.down)
    for _ in range(3):
        world.step(60, full=True)
    assert world.loud() == ["device-unreachable lone"]


def test_a_childs_alert_waits_for_the_poll_of_its_parent_that_it_demands(world: World) -> None:
    """The parent's target is polled at once; its answer lets the child's alert fire."""
    world.goes_down("child")
    world.step()
    assert world.loud() == []
    assert world.urgent() == {world.target["switch"]}
    world.now += 500
    world.answers("switch")
    world.step()
    assert world.loud() == ["device-unreachable child"]


def test_a_dead_switch_covers_what_is_behind_it(world: World) -> None:
    """One page for three devices; the child that stays dead after the return is told later."""
    world.goes_down("child")
    world.goes_down("twin")
    world.step()
    world.step(5)
    world.goes_down("switch")
    world.step()
    world.step()
    assert world.loud() == ["device-unreachable switch"]
    cause = f"alert:{world.open()['device-unreachable switch'].id}"
    assert world.open()["device-unreachable twin"].suppressed_by == cause

    world.step(60)
    world.answers("switch")
    world.step()
    assert world.urgent() >= {world.target["child"], world.target["twin"]}
    world.answers("twin")
    world.step()
    assert list(world.open()) == ["device-unreachable child"]
    assert world.loud() == []
    world.step(32)
    world.status("child", State.FAILING, "timeout")
    world.step()
    assert world.loud() == ["device-unreachable child"]
    assert world.events(Kind.ALERT_FIRED)[-1].endswith("switch is unreachable")


def test_a_mark_is_an_alert_until_a_poll_without_it(world: World) -> None:
    """The text has the number and the label; a failed poll ends nothing."""
    world.marked("lone", world.load())
    world.step()
    [alert] = world.open().values()
    assert alert.text == "lone cpu=1: 9.5 Uplink"
    assert alert.value == 9.5
    world.now += 60_000
    world.redis.delete(world.keys.marks)
    world.status("lone", State.FAILING, "timeout", ok_ms=world.now - 61_000)
    world.step(1, full=True)
    assert len(world.open()) == 1
    world.marked("lone")
    world.step()
    assert world.open() == {}


def test_an_emptied_redis_ends_no_alert_and_gets_its_marks_back(world: World) -> None:
    """Marks and the version of the rules are there again before a poll can end an alert."""
    world.marked("lone", world.load())
    world.goes_down("child")
    world.step()
    world.answers("switch")
    world.step()
    before = world.open()
    version = AlertLevels(world.board).rules_version()
    world.redis.flushall()
    for _ in range(2):
        world.step(1, full=True)
    assert world.open().keys() == before.keys()
    reconcile.reconcile(world.board, world.services.engine, "", world.now)
    world.status("lone", State.OK)  # a poll before the marks are back
    world.step(1)
    levels = AlertLevels(world.board)
    target = world.target["lone"]
    assert levels.rules_version() == version
    assert [each.series for each in levels.marks([target])[target]] == ["cpu=1"]
    world.step(1, full=True)
    assert world.open().keys() == before.keys()
    assert [alert.id for alert in world.open().values()] == [a.id for a in before.values()]


def test_the_next_leader_goes_on_where_the_last_one_was(world: World) -> None:
    """No alert twice; an end that nobody saw is found; the last leader writes nothing any more."""
    world.goes_down("lone")
    world.marked("switch", world.load())
    world.step()
    last, world.keeper = world.keeper, world.new_keeper()
    world.answers("lone")
    world.step()
    assert list(world.open()) == ["load switch"]
    assert len(world.all()) == 2
    world.goes_down("lone")
    with pytest.raises(TermOver):
        last.check(world.now + 1)
    assert list(world.open()) == ["load switch"]


def test_a_pass_that_could_not_be_written_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The news stay until the alert is in SQL."""
    world.goes_down("lone")
    with monkeypatch.context() as patch:
        patch.setattr(alert_rows, "writing", _refuse)
        with pytest.raises(ZeroDivisionError):
            world.step()
    assert world.open() == {}
    world.step()
    assert world.loud() == ["device-unreachable lone"]
    assert AlertLevels(world.board).news(world.now + 1).entries == {}


def _refuse(*_: object) -> None:
    raise ZeroDivisionError


def test_a_dark_site_is_one_alert_and_ends_with_its_canaries(world: World) -> None:
    """Its devices that were told before are covered; it ends only when polls answer again."""
    world.goes_down("lone")
    world.step()
    outage = Outage("ams", 1, world.now, world.now, (world.target["lone"],))
    site_windows.store(world.redis, world.keys, outage)
    world.step()
    world.step()
    assert world.loud() == ["site-dark ams"]
    assert world.open()["device-unreachable lone"].suppressed_by == "site:ams"
    site_windows.forget(world.redis, world.keys, "ams")
    world.step()
    assert "site-dark ams" in world.open()
    world.now += 1000
    for name in ("lone", "switch", "child"):
        world.answers(name)
    world.step()
    assert world.open() == {}


def test_a_failing_target_and_its_end(world: World) -> None:
    """A confirmed failure of a target whose device responds is told with its code."""
    world.status("lone", State.FAILING, "auth_failed")
    world.redis.sadd(world.keys.troubled, world.target["lone"])
    world.news("t", world.target["lone"])
    world.step()
    [alert] = world.open().values()
    assert alert.text == "lone snmp fails: auth_failed"
    world.now += 1
    world.redis.srem(world.keys.troubled, world.target["lone"])
    world.answers("lone")
    world.news("t", world.target["lone"])
    world.step()
    assert world.open() == {}


def test_missing_data_are_found_without_news(world: World) -> None:
    """A target that is not ok and had no good poll for ten intervals is told, and ends with one."""
    world.now += 20 * 60_000
    target = world.target["lone"]
    world.status("lone", State.FAILING, "host_busy", ok_ms=world.now - 11 * 60_000)
    world.redis.zadd(world.keys.unwell, {str(target): world.now - 11 * 60_000})
    world.step(1, full=True)
    assert list(world.open()) == ["no-data lone"]
    world.answers("lone")
    world.redis.zrem(world.keys.unwell, target)
    world.step(1, full=True)
    assert world.open() == {}


def test_missing_data_after_an_outage_are_told_by_a_later_poll_only(world: World) -> None:
    """A target that answers again after its site is back is not told by what was known before."""
    world.now += 20 * 60_000
    site_windows.store(world.redis, world.keys, Outage("ams", 1, world.now, world.now))
    world.step()
    target = world.target["lone"]
    world.status("lone", State.FAILING, "timeout", ok_ms=world.now - 11 * 60_000)
    world.redis.zadd(world.keys.unwell, {str(target): world.now - 11 * 60_000})
    world.redis.zrem(world.keys.unwell, *[str(t) for t in world.target.values() if t != target])
    world.now += 1000
    for name in ("switch", "child", "twin"):
        world.answers(name)
    site_windows.forget(world.redis, world.keys, "ams")
    world.step(1, full=True)
    world.step(1, full=True)
    assert [alert.state for alert in world.open().values()] == [AlertState.PENDING]
    world.now += 40_000
    world.answers("lone")
    world.step()
    assert world.open() == {}
    assert [alert.rule for alert in world.all()] == ["site-dark"]


def test_targets_that_were_never_polled_make_no_alerts(world: World) -> None:
    """A fleet that waits for its first worker is not told target by target."""
    for name, target in world.target.items():
        world.redis.hset(world.keys.status, str(target), Status().pack())
        world.redis.zadd(world.keys.unwell, {str(world.target[name]): 0})
    world.step(3600, full=True)
    assert world.open() == {}


def test_new_targets_do_not_hide_those_without_data(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait for their first worker, what was well before is looked at."""
    monkeypatch.setattr(stale_targets, "MOST_STALE", 2)
    for name in ("switch", "child", "twin"):
        world.redis.hset(world.keys.status, str(world.target[name]), Status().pack())
        world.redis.zadd(world.keys.unwell, {str(world.target[name]): 0})
    world.now += 20 * 60_000
    ok_ms = world.now - 11 * 60_000
    world.status("lone", State.FAILING, "host_busy", ok_ms=ok_ms)
    world.redis.zadd(world.keys.unwell, {str(world.target["lone"]): ok_ms})
    world.step(1, full=True)
    assert list(world.open()) == ["no-data lone"]


def test_a_disabled_device_covers_its_alert_and_a_removed_one_ends_it(world: World) -> None:
    """A paused device is said as such."""
    world.goes_down("lone")
    world.step()
    draft = DeviceDraft("lone", "127.0.0.1", "ams", enabled=False)
    device_rows.edit(world.services.engine, "lone", draft)
    world.step(6, full=True)
    assert world.open()["device-unreachable lone"].suppressed_by == "paused"
    device_rows.remove(world.services.engine, ["lone"])
    world.step(6, full=True)
    assert world.open() == {}


def test_a_check_without_news_reads_the_board_and_nothing_else(world: World) -> None:
    """Nothing is written while nothing happens."""
    assert world.keeper.check(world.now + 1) is False


def test_news_of_a_device_end_no_alert_of_its_series(world: World) -> None:
    """A mark that still holds is looked at, whichever news lead to the device."""
    world.marked("lone", world.load())
    world.step()
    before = [alert.id for alert in world.open().values()]
    world.now += 60_000
    world.answers("lone")
    world.news("d", world.device["lone"])
    world.step()
    assert [alert.id for alert in world.open().values()] == before


def test_a_dark_site_without_devices_has_no_alert(world: World) -> None:
    """No poll could ever show its end: the alert ends with the last device."""
    site_windows.store(world.redis, world.keys, Outage("ams", 1, world.now, world.now))
    world.step()
    device_rows.remove(world.services.engine, list(world.device))
    site_windows.forget(world.redis, world.keys, "ams")
    world.step(6, full=True)
    world.step(6, full=True)
    assert world.open() == {}


def test_a_commit_without_an_answer_is_found_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alert that SQL has already is kept, not begun a second time."""
    stored = alert_rows.writing

    @contextmanager
    def unanswered(engine: Engine, term: int, now_ms: int) -> Iterator[AlertWriter]:
        with stored(engine, term, now_ms) as rows:
            yield rows
        raise errors.StoreUnavailable("the database went away")

    world.goes_down("lone")
    with monkeypatch.context() as patch:
        patch.setattr(alert_rows, "writing", unanswered)
        with pytest.raises(errors.StoreUnavailable):
            world.step()
    world.step()
    assert world.loud() == ["device-unreachable lone"]
    assert len(world.all()) == 1


def test_a_dark_site_of_which_no_rule_tells_is_told_device_by_device(world: World) -> None:
    """The board tells of no device of a dark site, so the last polls of each are looked at."""
    rule_rows.enable(world.services.engine, ["site-dark"], False, KIM)
    world.now += 1000
    world.status("lone", State.FAILING, "timeout")
    site_windows.store(world.redis, world.keys, Outage("ams", 1, world.now, world.now))
    world.step(40, full=True)
    world.step(40, full=True)
    assert world.loud() == ["device-unreachable lone"]
    site_windows.forget(world.redis, world.keys, "ams")
    world.answers("lone")
    world.step(1, full=True)
    assert world.open() == {}


def test_an_alert_that_the_database_refuses_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once as an event that names rule and device, and is not tried at every pass."""
    refused = Mark(world.rules["load"].id, "cpu=2", -(2**70), world.now, 9.5)
    world.marked("twin", world.load(), refused)
    world.goes_down("lone")
    world.step()
    assert sorted(world.open()) == ["device-unreachable lone", "load twin"]
    assert world.loud() == ["device-unreachable lone", "load twin"]
    [told] = world.events(Kind.ALERT_REFUSED)
    assert told.startswith("load: the alert of twin snmp cpu=2 cannot be stored: ")

    tried: list[int] = []
    stored = AlertWriter.insert
    monkeypatch.setattr(
        AlertWriter, "insert", lambda self, new: tried.append(len(new)) or stored(self, new)
    )
    for _ in range(3):
        world.step(30, full=True)
    assert tried == []
    assert len(world.events(Kind.ALERT_REFUSED)) == 1


@pytest.mark.parametrize(
    "condition",
    [TargetFailing(), Threshold("load", above=5.0), SiteDark(), NO_LEADER],
    ids=lambda condition: type(condition).__name__,
)
def test_an_alert_of_a_rule_with_another_condition_ends(world: World, condition: Condition) -> None:
    """No poll could end it: the rule now looks at targets, sites or the platform."""
    world.goes_down("lone")
    world.step()
    old = world.rules["device-unreachable"]
    rule_rows.edit(world.services.engine, old.name, replace(old, condition=condition), KIM)
    world.step(1, full=True)
    assert "device-unreachable lone" not in world.open()
    [ended] = world.events(Kind.ALERT_RESOLVED)
    assert ended.endswith("the rule has another condition now")


def test_an_alert_of_a_clock_that_was_ahead_ends_with_the_next_answer(world: World) -> None:
    """Devices, series, failures, sites and missing data: no alert waits for the wrong instant."""
    right = world.now
    world.now += 365 * 86_400_000
    world.goes_down("child")
    world.marked("lone", world.load())
    outage = Outage("ams", world.now, world.now, world.now, (world.target["twin"],))
    site_windows.store(world.redis, world.keys, outage)
    world.step(1, full=True)
    assert world.open().keys() >= {"device-unreachable child", "load lone", "site-dark ams"}

    world.now = right
    world.step(30, full=True)
    site_windows.forget(world.redis, world.keys, "ams")
    world.now += 1000
    world.marked("lone")
    for name in ("child", "switch", "twin"):
        world.answers(name)
    world.step()
    assert world.open() == {}
    assert {alert.resolved_ms for alert in world.all()} == {world.now}
