"""The queue of a retry: the shared queue, also after a batch of a worker's own queue."""

from __future__ import annotations

import pytest
from celery.app.task import Context

from poller.tasks import poll as module


@pytest.mark.parametrize(
    ("came_by", "goes_to"),
    [
        ("poll.routeros~w1@host", "poll.routeros"),
        ("poll.routeros;site=a@b", "poll.routeros;site=a@b"),
    ],
    ids=["by a worker's own queue", "by a queue for all"],
)
def test_a_retry_goes_to_the_queue_for_all(came_by: str, goes_to: str) -> None:
    """As Celery itself makes it of the request."""
    request = Context(
        {"delivery_info": {"exchange": "", "routing_key": came_by, "priority": 5}},
        id="x",
        args=(),
        kwargs={},
    )
    module._route_retry(request)
    again = module.poll.signature_from_request(request)
    assert (again.options["queue"], again.options["priority"]) == (goes_to, 5)
