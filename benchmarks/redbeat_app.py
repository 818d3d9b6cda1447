"""A Celery application whose devices are RedBeat entries, for comparison."""

from __future__ import annotations

import os

from celery import Celery

QUEUE = "discarded"
_URL = os.environ["BENCH_REDIS_URL"]

app = Celery("benchmarks", broker=_URL)
app.conf.update(
    task_default_queue=QUEUE, task_ignore_result=True, redbeat_redis_url=_URL, timezone="UTC"
)
