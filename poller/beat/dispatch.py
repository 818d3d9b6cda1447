"""Claims due targets and publishes them in batches: one script and one pipeline per claim."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from poller.beat.routing.batch_router import BatchRouter
from poller.metering import process_metrics
from poller.observability import tracing
from poller.observability.tracing import Dispatch
from poller.settings import Settings
from poller.state.board.board_values import Claim, ClaimLimits
from poller.state.board.moves import Board
from poller.state.keys import ROUTINE_PRIORITY, URGENT_PRIORITY
from poller.state.publish_errors import broker_errors
from poller.tasks.poll import poll

#: Messages that kombu sends in one pipeline.
PIPELINE_SIZE = 500


class Dispatcher:
    """The leader's claims. A claim that was not published is published by the next `dispatch`.

    `progress` is called after each round trip.
    """

    def __init__(
        self,
        board: Board,
        settings: Settings,
        router: BatchRouter,
        progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._board = board
        self._router = router
        self._progress = progress
        self._published = ""  # token of the last claim that reached the broker
        lease_s = settings.queue_wait_s + settings.lease_margin_s
        self._limits = ClaimLimits(
            targets=settings.claim_limit,
            batch_size=settings.batch_size,
            lease_ms=round(lease_s * 1000),
        )

    def forget(self) -> None:
        """Start a new term: the board may hold the unpublished claim of another leader."""
        self._published = ""
        self._router.forget()

    def set_batch_sizes(self, sizes: Mapping[str, int]) -> None:
        """Set the targets per batch of these queues; all others have the usual size."""
        self._limits = replace(self._limits, sizes=sizes)

    def dispatch(
        self, leader: str, epoch: int, producer: Any, capacities: Mapping[str, int], now_ms: int
    ) -> Claim:
        """Make one claim and publish it. `capacities` limits the waiting batches of each queue.

        Raises StoreError, NotLeader, Bug; the next call publishes the claim then.
        """
        # The ledger reads the instant of the claim from the token.
        token = f"{epoch}.{now_ms:x}.{secrets.token_hex(5)}"
        remaining = self._router.remaining(capacities)
        trace = tracing.begin_dispatch()
        claim = self._board.claim(leader, token, self._published, remaining, self._limits, now_ms)
        self._progress()
        if claim.token:
            with process_metrics.redis_seconds.timed("publish"):
                self._publish(claim, producer, trace)
            self._published = claim.token
            process_metrics.claimed_targets.add(by=claim.targets)
        return claim

    def _publish(self, claim: Claim, producer: Any, trace: Dispatch | None) -> None:
        with broker_errors(), producer.batch(max_size=PIPELINE_SIZE):
            for part in claim.parts:
                size = self._limits.size_of(part.queue)
                priority = URGENT_PRIORITY if part.urgent else ROUTINE_PRIORITY
                urgency = "urgent" if part.urgent else "routine"
                ids = list(map(int, part.ids))
                for queue, batch in self._router.batches(part.queue, ids, size):
                    headers = _headers(trace, queue, urgency, len(batch))
                    _send(claim.token, queue, priority, list(batch), producer, headers)
                    process_metrics.published_batches.add(urgency)
                    self._progress()  # the first message to a queue declares it
        if trace is not None:
            trace.end()


def _headers(
    trace: Dispatch | None, queue: str, priority: str, targets: int
) -> dict[str, str] | None:
    """The trace of a batch, for its message."""
    if trace is None:
        return None
    return trace.headers({"queue": queue, "priority": priority, "targets": targets}) or None


def _send(
    token: str,
    queue: str,
    priority: int,
    ids: list[int],
    producer: Any,
    headers: dict[str, str] | None = None,
) -> None:
    # No `expires`: it compares two hosts' clocks. A batch whose lease ran out is refused by `start`
    # instead. Without the two reprs Celery would print all ids into every message, which would
    # double its cost.
    poll.apply_async(
        (token, ids),
        queue=queue,
        priority=priority,
        producer=producer,
        headers=headers,
        argsrepr=f"({token!r}, {len(ids)} targets)",
        kwargsrepr="{}",
        add_to_parent=False,
        retry=False,
    )
