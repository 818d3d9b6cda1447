"""Fires jobs: one message per queue names the jobs whose plans a worker shall look for.

The task is sent by its name: the leader imports no code of jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from poller.domain.batched import batched
from poller.state.keys import URGENT_PRIORITY
from poller.state.publish_errors import broker_errors

TASK = "poller.plan_jobs"
#: Jobs of one message.
MAX_NAMES = 200
#: Names that Celery's tools show of one message.
SHOWN_NAMES = 10
#: Messages that kombu sends in one pipeline.
PIPELINE_SIZE = 500


def send(app: Any, producer: Any, jobs: Iterable[tuple[str, str]]) -> int:
    """Fire jobs, each given as (queue, name). Returns the number of messages. Raises StoreError."""
    by_queue: defaultdict[str, list[str]] = defaultdict(list)
    for queue, name in jobs:
        by_queue[queue].append(name)

    messages = 0
    with broker_errors(), producer.batch(max_size=PIPELINE_SIZE):
        for queue, names in by_queue.items():
            for part in batched(names, MAX_NAMES):
                _send(app, producer, queue, list(part))
                messages += 1
    return messages


def _send(app: Any, producer: Any, queue: str, names: list[str]) -> None:
    app.send_task(
        TASK,
        (names,),
        queue=queue,
        priority=URGENT_PRIORITY,
        producer=producer,
        argsrepr=shown(names),
        kwargsrepr="{}",
        ignore_result=True,
        add_to_parent=False,
        retry=False,
    )


def shown(names: Sequence[str]) -> str:
    """The arguments as Celery's tools show them: `(['audit', 'prune'])`."""
    text = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    rest = len(names) - SHOWN_NAMES
    return f"([{text}])" if rest <= 0 else f"([{text}, and {rest} more])"
