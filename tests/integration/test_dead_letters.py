"""Dead letters from the poll that makes one to the poll that clears it, and their sync."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
import sqlalchemy as sa

from poller import errors
from poller.beat import deadletter_sync
from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.registry import Registry
from poller.db import engine as sql
from poller.db import migrate
from poller.db.inventory import devices, targets
from poller.db.record import dead_letter_rows
from poller.db.record.dead_letter_rows import Named, Wanted
from poller.db.tables import dead_letters
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits
from poller.state.cluster import event_stream as stream
from poller.state.cluster import overview_reader
from poller.workers.batch.worker_poller import Poller
from tests.conftest import wait_until

QUEUE = "poll.login"
LIMITS = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)


class Login:
    """A collector whose device refuses the credential while `refuses` is set."""

    name: ClassVar[str] = "login"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        pass

    def __init__(self) -> None:
        self.refuses = True

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if self.refuses:
            raise api.DeviceAuthFailed("invalid user name or password")
        yield api.Reading("up", 1.0)


class World:
    def __init__(self, services: Services, collector: Login) -> None:
        self.services = services
        self.collector = collector
        self.poller = Poller(services, "worker@test")
        self.claims = 0

    def add(self, number: int) -> list[int]:
        engine = self.services.engine
        for place in range(number):
            devices.add(
                engine, DeviceDraft(f"d{place}", "127.0.0.1"), [TargetDraft("login", "login")]
            )
        ids = sorted(target.id for target in targets.listing(engine, limit=None))
        self.services.board.place("", [(TargetSpec(i, 1, QUEUE, 60_000, 2_000), 1) for i in ids], 1)
        return ids

    def poll(self, ids: list[int]) -> None:
        """Poll these targets once, whatever their slot."""
        self.claims += 1
        before = f"t{self.claims - 1}" if self.claims > 1 else ""
        self.services.board.demand(ids)
        self.services.board.claim("", f"t{self.claims}", before, {QUEUE: 100}, LIMITS)
        self.poller.poll(f"t{self.claims}", ids)

    def letters(self) -> list[Named]:
        return dead_letter_rows.listing(self.services.engine, Wanted())

    def events(self, *kinds: Kind) -> list[Event]:
        found = [
            entry.event
            for entry in stream.after(self.services.redis, self.services.keys, "0-0", 1000)
        ]
        return [event for event in found if event and event.kind in kinds]


@pytest.fixture
def world(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    services = Services(Settings())
    migrate.upgrade(services.engine)
    collector = Login()
    services.registry = Registry({"login": collector}, (), {"login": "tests"})  # type: ignore[misc]
    made = World(services, collector)
    yield made
    made.poller.writers.close(5.0)
    services.engine.dispose()


def test_the_second_refusal_makes_a_letter_and_a_success_clears_it(world: World) -> None:
    """The first refusal opens the breaker; slow retries are counted; each change is an event."""
    ids = world.add(1)
    world.poll(ids)
    assert world.letters() == []
    world.poll(ids)
    made = world.letters()[0].letter
    assert (made.reason, made.error_code, made.attempts) == (Reason.AUTH_FAILED, "auth_failed", 2)
    assert made.first_ms < made.last_ms == made.parked_ms < made.next_ms
    world.poll(ids)
    again = world.letters()[0].letter
    assert (again.attempts, again.parked_ms) == (3, made.parked_ms)
    assert again.next_ms >= made.next_ms - 180_000
    seen = overview_reader.read(world.services.redis, world.services.keys)
    assert (seen.breakers_open, seen.dead_letters) == (1, {"auth_failed": 1})
    world.collector.refuses = False
    world.poll(ids)
    assert world.letters() == []
    events = world.events(Kind.DEAD_LETTER_MADE, Kind.DEAD_LETTER_CLEARED)
    assert [(event.kind, event.device) for event in events] == [
        (Kind.DEAD_LETTER_MADE, "d0"),
        (Kind.DEAD_LETTER_CLEARED, "d0"),
    ]
    assert events[0].data["reason"] == "auth_failed"
    seen = overview_reader.read(world.services.redis, world.services.keys)
    assert (seen.breakers_open, seen.dead_letters, seen.states[State.OK]) == (0, {}, 1)


def test_a_round_costs_one_statement_however_many_letters_it_makes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round without dead letters costs no statement."""
    ids = world.add(64)
    statements: list[str] = []
    rounds: list[int] = []
    write_rows = world.poller.writers.write_rows

    def counting(*arguments: Any) -> None:
        rounds.append(1)
        write_rows(*arguments)

    monkeypatch.setattr(world.poller.writers, "write_rows", counting)

    @sa.event.listens_for(world.services.engine, "before_cursor_execute")
    def note(_conn: object, _cursor: object, text: str, *_: object) -> None:
        if "dead_letters" in text:
            statements.append(text)

    world.poll(ids)
    assert statements == []
    rounds.clear()
    world.poll(ids)
    assert sum(text.startswith("INSERT") for text in statements) <= len(rounds) < 32
    assert len(world.letters()) == 64


def test_letters_wait_for_a_database_that_is_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead letters are spooled like rows of the ledger, and written in order when the database is
    up.
    """
    ids = world.add(2)
    world.poll(ids)

    def refuse(*_: object) -> None:
        raise errors.StoreUnavailable("cannot use the database")

    with monkeypatch.context() as patch:
        patch.setattr(world.poller.writers._letters, "_write", refuse)
        world.poll(ids)
        assert world.letters() == []
        world.collector.refuses = False
        world.poll(ids[:1])
        assert world.poller.writers.waiting >= 3
    wait_until(lambda: world.poller.writers.waiting == 0, "the letters' way to the database")
    assert [named.letter.target_id for named in world.letters()] == ids[1:]


def test_the_sync_adds_lost_letters_and_clears_outdated_ones(world: World) -> None:
    """A parked target gets its letter; a letter whose target answered since is cleared."""
    ids = world.add(3)
    world.poll(ids)
    world.poll(ids)
    board, engine = world.services.board, world.services.engine
    before = {named.letter.target_id: named.letter for named in world.letters()}
    assert deadletter_sync.sync(board, engine) == (0, 0)
    with sql.writing(engine) as conn:
        conn.execute(sa.delete(dead_letters).where(dead_letters.c.target_id == ids[0]))
    assert deadletter_sync.sync(board, engine) == (1, 0)
    assert {named.letter.target_id: named.letter for named in world.letters()} == before
    world.collector.refuses = False
    world.poll(ids[:1])
    dead_letter_rows.write(engine, [before[ids[0]]])  # late, from another worker's disk
    assert len(world.letters()) == 3
    assert deadletter_sync.sync(board, engine) == (0, 1)
    assert [named.letter.target_id for named in world.letters()] == ids[1:]


def test_a_letter_survives_an_emptied_redis_until_its_target_answers(world: World) -> None:
    """A rebuilt board does not know that the target was parked."""
    ids = world.add(1)
    world.poll(ids)
    world.poll(ids)
    world.services.redis.flushall()
    board, engine = world.services.board, world.services.engine
    board.place("", [(TargetSpec(ids[0], 1, QUEUE, 60_000, 2_000), 1)], 1)
    world.claims = 0
    deadletter_sync.sync(board, engine)
    assert len(world.letters()) == 1
    world.collector.refuses = False
    world.poll(ids)
    deadletter_sync.sync(board, engine)
    assert world.letters() == []


def test_a_letter_survives_the_spool() -> None:
    """A clearance survives as well."""
    from poller.workers.results import spool_codec

    codec = spool_codec.DeadLetterCodec()
    items = [Letter(1, 2, Reason.OPEN_TOO_LONG, "timeout", 'é "x"', 3, 4, 5, 6), Letter(7, 8)]
    assert codec.unpack(codec.pack(items, ())[0], {}) == items
