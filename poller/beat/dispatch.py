"""Claim what is due and publish it in batches: one Lua call and one pipeline per tick, however many targets."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from poller.beat.session_affinity import Homes
from poller.settings import Settings
from poller.state.board.board_values import Claim, ClaimLimits
from poller.state.board.moves import Board
from poller.state.keys import ROUTINE_PRIORITY, URGENT_PRIORITY
from poller.state.publish_errors import broker_errors
from poller.tasks.poll import poll


class Dispatcher:
    def __init__(self, board: Board, settings: Settings, homes: Homes) -> None:
        self._board = board
        self._homes = homes
        self._published = ""  # token of the last claim that reached the broker
        self._room = ClaimLimits(
            targets=settings.claim_limit,
            batch_size=settings.batch_size,
            lease_ms=round((settings.queue_wait_s + settings.lease_margin_s) * 1000),
        )

    def forget(self) -> None:
        """We were not leading: the outbox may hold another leader's claim, which must be published again."""
        self._published = ""
        self._homes.forget()

    def resize(self, sizes: Mapping[str, int]) -> None:
        """From now on batches of these queues have so many targets; all others are of the usual size."""
        self._room = replace(self._room, sizes=sizes)

    def dispatch(
        self, leader: str, epoch: int, producer: Any, queues: Mapping[str, int], now_ms: int
    ) -> Claim:
        """One claim, published. `queues` says how many batches may wait in each.

        Raises StoreError, NotLeader, Bug; the claim is then not lost.
        """
        token = (
            f"{epoch}.{now_ms:x}.{secrets.token_hex(5)}"  # with the claim's instant, for the ledger
        )
        rooms = self._homes.narrowed(queues)
        claim = self._board.claim(leader, token, self._published, rooms, self._room, now_ms)
        if claim.token:
            self._publish(claim, producer)
            self._published = claim.token
        return claim

    def _publish(self, claim: Claim, producer: Any) -> None:
        with broker_errors(), producer.batch(max_size=500):
            for queue, urgent, ids in claim.parts:
                for name, batch in self._homes.batches(queue, ids, self._room.size_of(queue)):
                    self._send(claim.token, name, urgent, [int(i) for i in batch], producer)

    def _send(self, token: str, queue: str, urgent: bool, ids: list[int], producer: Any) -> None:
        # No `expires`: it compares two hosts' clocks. A batch whose lease ran out is refused by `start` instead.
        # Without the two reprs Celery would print all ids into every message, at half the cost of it.
        poll.apply_async(
            (token, ids),
            queue=queue,
            priority=URGENT_PRIORITY if urgent else ROUTINE_PRIORITY,
            producer=producer,
            argsrepr=f"({token!r}, {len(ids)} targets)",
            kwargsrepr="{}",
            add_to_parent=False,
            retry=False,
        )
