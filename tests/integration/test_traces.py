"""Traces of a batch, as a real receiver gets them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poller.observability import tracing
from tests.integration.worlds import World
from tests.trace_receiver import TraceReceiver

HEADER = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def receiver() -> Iterator[TraceReceiver]:
    with TraceReceiver().running() as running:
        tracing.start(tracing.TraceDestination(running.url, 1.0), "worker")
        yield running
        tracing.stop()


def test_a_chosen_batch_has_a_span_for_each_target_and_each_write(
    world: World, receiver: TraceReceiver
) -> None:
    """They belong to the leader's trace; a failed poll has its code, and nothing of the device."""
    ids = world.add("answer", "dead", "answer")
    world.claim()
    world.poller.poll("t", ids, 0, HEADER)
    tracing.stop()  # delivers what waits

    [batch] = receiver.named("poll batch")
    assert (batch.trace_id, batch.parent_id) == ("a" * 32, "b" * 16)
    assert batch.attributes == {"poller.targets": 3, "poller.attempt": 1}
    assert batch.service == "poller-worker"

    polls = {span.attributes["poller.target_id"]: span for span in receiver.named("poll target")}
    assert sorted(polls) == ids
    assert {span.parent_id for span in polls.values()} == {batch.span_id}
    assert polls[ids[0]].attributes == {
        "poller.target_id": ids[0],
        "poller.collector": "fake",
        "poller.outcome": "ok",
        "poller.error_code": "",
        "poller.samples": 1,
    }
    assert polls[ids[1]].attributes["poller.error_code"] == "timeout"
    assert [polls[each].is_error for each in ids] == [False, True, False]
    assert all(0 <= span.seconds < 60 for span in receiver.spans)

    writes = {span.name for span in receiver.spans} - {"poll batch", "poll target"}
    assert writes == {"write readings", "write runs", "finish"}
    sent = "".join(span.text for span in receiver.spans)
    assert "127.0.0." not in sent
    assert "no answer" not in sent


@pytest.mark.parametrize("header", [None, "", "garbage", f"00-{'0' * 32}-{'0' * 16}-01"])
def test_a_batch_that_was_not_chosen_sends_nothing(
    world: World, receiver: TraceReceiver, header: str | None
) -> None:
    """The leader chooses; a worker starts no trace of its own."""
    ids = world.add("answer")
    world.claim()
    world.poller.poll("t", ids, 0, header)
    tracing.stop()
    assert receiver.spans == []


def test_no_batch_waits_for_a_receiver_that_is_gone(world: World) -> None:
    """Spans that cannot be delivered are dropped."""
    tracing.start(tracing.TraceDestination("http://127.0.0.1:9/v1/traces", 1.0), "worker")
    ids = world.add("answer")
    world.claim()
    world.poller.poll("t", ids, 0, HEADER)
    assert world.outcomes()[ids[0]][0].value == "ok"
    tracing.stop()
