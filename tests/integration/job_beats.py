"""Beats without threads that fire jobs, and what they sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from celery import Celery

from poller import app as application
from poller.beat.jobs import job_messages
from poller.beat.scheduler import PollScheduler
from poller.bootstrap import Services
from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry

QUEUE = "job.poller"


class Beats:
    """Makes beats that share one application, as processes share one configuration."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.app = Celery("poller", set_as_current=False)
        self.app.conf.update(application._configuration(services.settings))
        self.made: list[PollScheduler] = []

    def make(self) -> PollScheduler:
        """A beat without threads; a test calls its tick and the passes of its job thread."""
        beat = PollScheduler(self.app, lazy=True)
        self.made.append(beat)
        return beat


@contextmanager
def running(services: Services) -> Iterator[Beats]:
    """Beats that are closed at the end."""
    beats = Beats(services)
    yield beats
    for beat in beats.made:
        beat._jobs._disconnect()
        beat.close()
    beats.app.close()


def set_clock(beat: PollScheduler, now_ms: int) -> None:
    """Set the database's clock as the beat knows it."""
    beat._job_clock.record(now_ms, time.monotonic(), time.monotonic())


def tick(beat: PollScheduler) -> None:
    """A tick without a pause after it."""
    beat._wakeup.set()
    beat.tick()


def serve(services: Services, *queues: str, name: str = "w1") -> None:
    """Let a living worker take from these queues."""
    worker = Worker(name, 0, 1, 0, 0, 0, queues=queues or (QUEUE,))
    worker_registry.announce(services.redis, services.keys, worker)


def sent(client: redis.Redis, queue: str = QUEUE) -> list[list[str]]:
    """The names of jobs in each message, oldest first; takes the messages."""
    found = []
    while text := client.rpop(queue):
        message: dict[str, Any] = json.loads(str(text))
        assert message["headers"]["task"] == job_messages.TASK
        (names,), _, _ = json.loads(message["body"])
        found.append(names)
    return found
