"""The state of a device, read from a real inventory and a real board."""

from __future__ import annotations

import pytest
import redis

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.presentation import device_state

MINUTE_MS = 60_000


@pytest.fixture
def ids(services: Services) -> list[int]:
    """The ids of the targets of the device sw1."""
    drafts = [
        TargetDraft(collector="snmp", name=name, interval_ms=MINUTE_MS) for name in ("a", "b", "c")
    ]
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", site="west"), drafts)
    return [target.id for target in targets.of_device(services.engine, "sw1")]


def test_the_state_has_the_device_and_the_places_of_its_targets(
    services: Services, ids: list[int]
) -> None:
    """A target that is not on the board is left out."""
    next_ms = services.board.now_ms() + MINUTE_MS
    services.board.place("", [(_spec(id_), next_ms) for id_ in ids[:2]], 1)
    failed = Status(
        state=State.FAILING,
        since_ms=1,
        run_ms=2,
        finished_ms=3,
        failures=4,
        code="timeout",
        message="no answer",
    )
    services.redis.hset(services.keys.status, str(ids[0]), failed.pack())
    found = device_state.read(services, "sw1", ids)
    assert (found.address, found.site) == ("192.0.2.1", "west")
    assert (found.enabled, found.board_error) == (True, "")
    assert set(found.on_board) == set(ids[:2])
    for target in found.on_board.values():
        assert (target.place, target.next_ms, target.queue) == ("due", next_ms, "poll.snmp")
    assert found.on_board[ids[0]].status == failed


def test_all_targets_are_read_in_three_round_trips(
    services: Services, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for the clock, one for the specs and one for everything else."""
    services.board.place("", [(_spec(id_), 2**40) for id_ in ids], 1)
    round_trips: list[str] = []

    def count_calls(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(self: object, *args: object, **options: object) -> object:
            round_trips.append(str(args[:1]))
            return real(self, *args, **options)

        monkeypatch.setattr(owner, name, counted)

    count_calls(redis.Redis, "execute_command")
    count_calls(redis.client.Pipeline, "execute")
    found = device_state.read(services, "sw1", ids)
    assert len(found.on_board) == len(ids)
    assert len(round_trips) == 3


def test_an_unknown_device_is_an_error(services: Services, ids: list[int]) -> None:
    """The error is NotFound."""
    with pytest.raises(errors.NotFound):
        device_state.read(services, "sw9", ids)


def test_an_error_of_redis_is_in_the_state(
    services: Services, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inventory row is there, and the targets on the board are missing."""

    def unavailable() -> int:
        raise errors.StoreUnavailable("cannot use Redis")

    monkeypatch.setattr(services.board, "now_ms", unavailable)
    found = device_state.read(services, "sw1", ids)
    assert (found.address, found.on_board) == ("192.0.2.1", {})
    assert found.board_error == "cannot use Redis"


def _spec(target_id: int) -> TargetSpec:
    return TargetSpec(target_id, 1, "poll.snmp", MINUTE_MS, 5_000)
