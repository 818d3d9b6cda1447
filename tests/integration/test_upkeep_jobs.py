"""The jobs `database-upkeep` and `board-audit`: what they say, and when they fail."""

from __future__ import annotations

import pytest

from poller.beat import reconcile
from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.jobs.builtin import board_invariant, database_upkeep
from tests.integration.job_contexts import RunContext


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_invariant, "SECOND_LOOK_S", 0.0)


@pytest.fixture
def ids(services: Services) -> list[str]:
    """Three targets on the board."""
    for number in range(3):
        draft = DeviceDraft(name=f"sw{number}", address="192.0.2.1")
        devices.add(services.engine, draft, [TargetDraft(collector="ping")])
    services.leadership.take()
    reconcile.reconcile(services.board, services.engine, services.leadership.token, now_ms=1)
    found = sorted(services.board.ids())
    assert len(found) == 3
    return [str(target_id) for target_id in found]


def test_upkeep_says_what_it_did(services: Services) -> None:
    """A new file gives back free pages, so there is no note."""
    context = RunContext(services)
    result = database_upkeep.database_upkeep(context)
    assert result.keys() == {"analyzed_tables", "pages", "free_pages", "freed_pages", "log_mb"}
    assert result["analyzed_tables"] == context.heartbeats > 10


def test_a_sound_board_is_counted(services: Services, ids: list[str]) -> None:
    """Nothing is parked, and no letter is missing."""
    names = ("lost", "doubled", "strays", "unreadable")
    names += ("parked", "dead_letters", "parked_without_letter")
    assert board_invariant.board_audit(RunContext(services)) == dict.fromkeys(names, 0)


def test_a_damaged_board_fails_the_audit(services: Services, ids: list[str]) -> None:
    """The failure names the targets; the audit repairs nothing."""
    queue = services.board.queues()[0]
    services.redis.zrem(services.keys.due(queue), ids[0])
    services.redis.zadd(services.keys.parked, {ids[1]: 5})
    with pytest.raises(board_invariant.BoardDamaged) as failure:
        board_invariant.board_audit(RunContext(services))
    assert f"1 lost (targets {ids[0]}); 1 doubled (targets {ids[1]})" in str(failure.value)
    assert services.redis.zscore(services.keys.due(queue), ids[0]) is None


def test_damage_that_is_seen_once_is_none(
    services: Services, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit between two reads looks like damage for a moment."""
    queue = services.board.queues()[0]
    score = services.redis.zscore(services.keys.due(queue), ids[0])
    services.redis.zrem(services.keys.due(queue), ids[0])

    def put_back(_: float) -> None:
        services.redis.zadd(services.keys.due(queue), {ids[0]: score})

    monkeypatch.setattr(board_invariant.time, "sleep", put_back)
    assert board_invariant.board_audit(RunContext(services))["lost"] == 0


def test_a_parked_target_without_a_letter_is_counted(services: Services, ids: list[str]) -> None:
    """The leader writes the letter within minutes, so this is no failure."""
    queue = services.board.queues()[0]
    services.redis.zrem(services.keys.due(queue), ids[0])
    services.redis.zadd(services.keys.parked, {ids[0]: 5})
    result = board_invariant.board_audit(RunContext(services))
    assert (result["parked"], result["parked_without_letter"]) == (1, 1)
