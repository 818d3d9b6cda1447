"""Workers judge their polls by the rules in SQL, and leave marks on the board.

The collector is scripted; worker, board and database are real.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import redis

from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.registry import Registry
from poller.db import migrate
from poller.db.alerts import rule_rows
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.alerts import judgement
from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import InterfaceDown, MetricCondition, Rule, Threshold
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.metering import process_metrics
from poller.settings import Settings
from poller.state.board.alert_levels import AlertLevels
from poller.workers.batch.worker_poller import Poller
from tests.integration.worlds import Fake, World

PERSON = Actor("ada", ActorKind.CLI, "")
HOT = Threshold("temperature", above=60.0)
LOADED_WITHIN_S = 30.0


class Scripted(Fake):
    """A collector that yields the readings a test gives it."""

    name: ClassVar[str] = "fake"

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[api.Reading] = []
        self.error: api.DeviceError | None = None

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        for reading in self.readings:
            yield reading
        if self.error is not None:
            raise self.error

    def port(self, operating: float) -> None:
        labels = {"ifIndex": "1", "ifName": "eth0"}
        self.readings = [
            api.Reading("ifOperStatus", operating, labels),
            api.Reading("ifAdminStatus", 1.0, labels),
        ]

    def heat(self, value: float) -> None:
        self.readings = [api.Reading("temperature", value)]


class Watch:
    """A world with one target and its rules."""

    def __init__(self, world: World, collector: Scripted) -> None:
        self.world, self.collector = world, collector
        self.services = world.services
        self.levels = AlertLevels(world.board)
        [self.target_id] = world.add("answer")
        self._tokens = iter(range(1_000))

    def rule(self, condition: MetricCondition, where: TargetFilter = ANY, name: str = "r") -> int:
        """Store a rule and tell the board. Returns its id."""
        rule = Rule(name, condition, where=where, owner=PERSON.name)
        stored = rule_rows.add(self.services.engine, rule, PERSON)
        self.tell()
        assert stored.rule is not None
        return stored.rule.id

    def tell(self) -> None:
        """Tell the workers the version that is in SQL, and let this one read it."""
        version = rule_rows.version(self.services.engine)
        self.levels.set_rules_version("", version)
        self.wait_until_loaded(version)

    def wait_until_loaded(self, version: int) -> None:
        judge = self.world.poller._parts.rule_judge
        ends = time.monotonic() + LOADED_WITHIN_S
        while judge.rules_version != version and time.monotonic() < ends:
            judge._rules._read_mono = 0.0  # not the pause between two reads
            judge.judge_round([], set(), version)
            time.sleep(0.02)
        assert judge.rules_version == version

    def poll(self) -> list[Mark]:
        """Poll the target now. Returns its marks."""
        self.world.poll_now([self.target_id], f"k{next(self._tokens)}")
        return self.levels.marks([self.target_id]).get(self.target_id, [])

    def another_worker(self) -> None:
        """Let a worker that knows nothing take over."""
        self.world.poller = Poller(self.services, "other@test")
        self.wait_until_loaded(rule_rows.version(self.services.engine))


@pytest.fixture
def collector() -> Scripted:
    return Scripted()


@pytest.fixture
def watch(
    home: Path,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    collector: Scripted,
) -> Iterator[Watch]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    services = Services(Settings())
    migrate.upgrade(services.engine)
    services.registry = Registry({"fake": collector}, (), {"fake": "tests"})  # type: ignore[misc]
    yield Watch(World(services, collector), collector)
    services.engine.dispose()


def test_a_poll_above_a_threshold_leaves_a_mark_until_it_is_below(
    watch: Watch, collector: Scripted
) -> None:
    """Beginning and end are news for the keeper; the mark outlives the worker."""
    rule_id = watch.rule(HOT)
    collector.heat(70.0)
    [mark] = watch.poll()
    assert (mark.rule_id, mark.series, mark.value) == (rule_id, "", 70.0)
    news = watch.levels.news(watch.world.board.now_ms() + 1)
    assert news.target_ids == [watch.target_id]
    watch.levels.forget_news(news)

    watch.another_worker()
    assert watch.poll() == [mark]
    assert watch.levels.news(watch.world.board.now_ms() + 1).target_ids == []
    collector.heat(20.0)
    assert watch.poll() == []
    assert watch.levels.news(watch.world.board.now_ms() + 1).target_ids == [watch.target_id]


def test_a_rule_judges_only_the_targets_of_its_filter(watch: Watch, collector: Scripted) -> None:
    watch.rule(HOT, target_filter.parse("name:elsewhere-*"), "others")
    collector.heat(70.0)
    assert watch.poll() == []
    mine = watch.rule(HOT, target_filter.parse("name:d*"), "mine")
    assert [mark.rule_id for mark in watch.poll()] == [mine]


def test_a_failed_poll_keeps_the_marks(watch: Watch, collector: Scripted) -> None:
    watch.rule(HOT)
    collector.heat(70.0)
    marks = watch.poll()
    collector.readings, collector.error = [], api.DeviceTimeout("no answer")
    assert watch.poll() == marks


def test_a_removed_rule_takes_its_marks_with_it(watch: Watch, collector: Scripted) -> None:
    watch.rule(HOT)
    collector.heat(70.0)
    assert watch.poll()
    rule_rows.remove(watch.services.engine, "r", PERSON)
    watch.tell()
    assert watch.poll() == []


def test_an_interface_that_went_down_between_two_workers_is_noticed(
    watch: Watch, collector: Scripted
) -> None:
    """The second worker has the stored poll of the first one only."""
    watch.rule(InterfaceDown())
    collector.port(1.0)
    assert watch.poll() == []
    watch.another_worker()
    collector.port(2.0)
    assert [mark.series for mark in watch.poll()] == ["ifName=eth0"]
    collector.port(1.0)
    assert watch.poll() == []


def test_an_interface_that_was_down_before_is_not_told_by_a_new_worker(
    watch: Watch, collector: Scripted
) -> None:
    watch.rule(InterfaceDown())
    collector.port(2.0)
    assert watch.poll() == []
    watch.another_worker()
    assert watch.poll() == []


def test_nothing_is_judged_while_the_board_tells_no_version(
    watch: Watch, collector: Scripted
) -> None:
    """Redis was emptied, and the leader has not restored the marks yet."""
    rule_id = watch.rule(HOT)
    collector.heat(70.0)
    [mark] = watch.poll()
    watch.services.redis.delete(watch.services.keys.rules, watch.services.keys.marks)
    collector.heat(20.0)
    assert watch.poll() == []
    watch.levels.put_marks("", {watch.target_id: mark_format.pack([mark])})
    watch.tell()
    collector.heat(70.0)
    assert [(each.rule_id, each.since_ms) for each in watch.poll()] == [(rule_id, mark.since_ms)]


def test_a_broken_judge_costs_no_poll(
    watch: Watch, collector: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and the next poll is judged again."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    watch.rule(HOT)
    collector.heat(70.0)
    before = _unjudged()
    with monkeypatch.context() as patched:
        patched.setattr(judgement, "judge", broken)
        assert watch.poll() == []
    assert _unjudged() == before + 1
    assert watch.world.sound([watch.target_id])
    assert len(watch.world.outcomes()) == 1
    assert len(watch.poll()) == 1


def test_rules_that_cannot_be_read_leave_the_old_ones(
    watch: Watch, collector: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The polls go on meanwhile."""
    watch.rule(HOT)
    collector.heat(70.0)
    judge = watch.world.poller._parts.rule_judge
    version = judge.rules_version
    calls: list[int] = []

    def away() -> None:
        calls.append(1)
        raise ConnectionError("SQL is away")

    monkeypatch.setattr(judge._rules, "_load", away)
    judge._rules._read_mono = 0.0
    watch.levels.set_rules_version("", version + 1)
    assert len(watch.poll()) == 1
    _until(lambda: bool(calls))
    assert judge.rules_version == version


def _unjudged() -> float:
    return sum(value for _, _, value in process_metrics.unjudged_polls.samples())


def _until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + LOADED_WITHIN_S
    while not done() and time.monotonic() < ends:
        time.sleep(0.02)
    assert done()
