"""How a device stands, as its page shows it: read from a real inventory and a real board."""

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
    """The targets of sw1, which is at a site."""
    drafts = [
        TargetDraft(collector="snmp", name=name, interval_ms=MINUTE_MS) for name in ("a", "b", "c")
    ]
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", site="west"), drafts)
    return [target.id for target in targets.of_device(services.engine, "sw1")]


def test_it_tells_who_the_device_is_and_where_its_targets_wait(
    services: Services, ids: list[int]
) -> None:
    """Status, queue and next poll of each; one that the board does not know is left out."""
    board, next_ms = services.board, services.board.now_ms() + MINUTE_MS
    board.place(
        "", [(TargetSpec(i, 1, "poll.snmp", MINUTE_MS, 5_000), next_ms) for i in ids[:2]], 1
    )
    failed = Status(State.FAILING, 1, 2, 3, 0, 4, 0, "timeout", "no answer")
    services.redis.hset(services.keys.status, str(ids[0]), failed.pack())
    found = device_state.read(services, "sw1", ids)
    assert (found.address, found.site, found.enabled, found.trouble) == (
        "192.0.2.1",
        "west",
        True,
        "",
    )
    assert {
        i: (seen.place, seen.next_ms, seen.queue) for i, seen in found.seen.items()
    } == dict.fromkeys(ids[:2], ("due", next_ms, "poll.snmp"))
    assert found.seen[ids[0]].status == failed


def test_many_targets_are_asked_for_together(
    services: Services, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three words with the server: its clock, the specs, and all else."""
    services.board.place(
        "", [(TargetSpec(i, 1, "poll.snmp", MINUTE_MS, 5_000), 2**40) for i in ids], 1
    )
    said: list[str] = []
    for kind, name in ((redis.Redis, "execute_command"), (redis.client.Pipeline, "execute")):
        real = getattr(kind, name)
        monkeypatch.setattr(
            kind,
            name,
            lambda self, *a, _real=real, **k: said.append(str(a[:1])) or _real(self, *a, **k),
        )
    assert len(device_state.read(services, "sw1", ids).seen) == len(ids)
    assert len(said) == 3


def test_a_device_that_is_not_there(services: Services, ids: list[int]) -> None:
    with pytest.raises(errors.NotFound):
        device_state.read(services, "sw9", ids)


def test_without_redis_the_rest_is_told(
    services: Services, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And why the board is missing."""

    def away() -> int:
        raise errors.StoreUnavailable("cannot use Redis")

    monkeypatch.setattr(services.board, "now_ms", away)
    found = device_state.read(services, "sw1", ids)
    assert (found.address, found.seen, found.trouble) == ("192.0.2.1", {}, "cannot use Redis")
