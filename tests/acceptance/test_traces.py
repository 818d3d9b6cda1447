"""A traced poll, from the leader's dispatch to the worker's targets, through Celery's messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster, soon
from tests.trace_receiver import ReceivedSpan, TraceReceiver

ATTEMPT = "poller.attempt"

pytestmark = pytest.mark.timeout(90)


def test_the_trace_of_a_poll_goes_through_two_processes(tmp_path: Path) -> None:
    """Each target's span is below its batch, and the batch below the leader's dispatch."""
    with TraceReceiver().running() as receiver:
        settings = {"POLLER_TRACE_ENDPOINT": receiver.url, "POLLER_TRACE_RATIO": "1"}
        with Cluster(tmp_path, **settings) as cluster:
            cluster.valkey.start()
            cluster.add_targets(3, 1.0)
            cluster.add_targets(1, 6.0, seconds=5.0, prefix="slow", timeout_s=0.3)
            cluster.start_beat()
            cluster.start_worker()

            def whole_trace() -> list[ReceivedSpan] | None:
                dispatched = {span.span_id: span for span in receiver.named("dispatch batch")}
                batches = {span.span_id: span for span in receiver.named("poll batch")}
                for span in receiver.named("poll target"):
                    batch = batches.get(span.parent_id)
                    dispatch = dispatched.get(batch.parent_id) if batch else None
                    if batch and dispatch:
                        return [dispatch, batch, span]
                return None

            def retry() -> ReceivedSpan | None:
                batches = receiver.named("poll batch")
                return next((span for span in batches if span.attributes[ATTEMPT] == 2), None)

            trace = soon(whole_trace, 40, "dispatch, batch and target of one trace")
            retried = soon(retry, 20, "the retry of a poll that timed out")
            traces = {span.trace_id for span in receiver.named("dispatch batch")}

    assert [span.service for span in trace] == ["poller-beat", "poller-worker", "poller-worker"]
    assert len({span.trace_id for span in trace}) == 1
    dispatch, _, target = trace
    assert dispatch.attributes["poller.queue"] == "poll.recorder"
    assert target.attributes["poller.outcome"] == "ok"
    assert retried.trace_id in traces
