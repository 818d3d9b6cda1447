"""How many batches may wait in the own queue of one worker, and when the worker takes none.

A worker that is slow, stopped or dead holds up a batch for two seconds at most while another one
is free: the next ones go to the shared queue, and the waiting ones move there. If all workers of a
queue are busy, their batches wait where they are known: elsewhere they would cost more.
"""

from __future__ import annotations

import math

#: A batch may wait this long, at the pace at which the worker takes batches.
WAIT_S = 0.5
#: Batches that may wait for a worker of any pace, once one had to wait.
LEAST_WAITING = 2
#: A worker that takes no batch for this long, while some wait, is stalled.
STALLED_S = 2.0
#: The pace is measured over this time.
PACE_S = 1.0


class QueuePace:
    """The own queue of one worker, as the leader sees it from tick to tick."""

    def __init__(self, waiting: int, now_mono: float) -> None:
        self.waiting = waiting  # batches: as last read, and those published since
        self.per_s = 0.0  # batches that the worker takes
        self.had_to_wait = waiting > 0  # when the queue was read last
        #: After a stall, until the worker takes a batch: one batch at a time is a trial.
        self._is_on_trial = False
        self._moved_mono = now_mono  # when a batch was taken last, or nothing waited
        self._since_mono = now_mono  # start of the measurement of the pace
        self._taken = 0  # since then

    def read(self, waiting: int, now_mono: float) -> None:
        """Follow a new reading of the queue."""
        taken = max(0, self.waiting - waiting)
        if taken:
            self._is_on_trial = False
        if taken or not waiting:
            self._moved_mono = now_mono
        self.waiting = waiting
        self.had_to_wait = waiting > 0

        self._taken += taken
        elapsed_s = now_mono - self._since_mono
        if elapsed_s >= PACE_S:
            self.per_s = self._taken / elapsed_s
            self._since_mono = now_mono
            self._taken = 0

    def publish(self, now_mono: float) -> None:
        """Count a batch that is published to the queue."""
        if not self.waiting:
            self._moved_mono = now_mono
        self.waiting += 1

    def hand_over(self) -> None:
        """Empty the queue: its batches move to the shared queue."""
        self.waiting = 0
        self._is_on_trial = True

    def is_stalled(self, now_mono: float) -> bool:
        """Whether batches wait and the worker takes none."""
        return self.waiting > 0 and now_mono - self._moved_mono >= STALLED_S

    def room(self, slots: int, is_other_free: bool) -> int:
        """The number of batches that may be published now: one for each slot, or fewer if batches
        had to wait and another worker is free.
        """
        limit = slots
        if self._is_on_trial:
            limit = min(1, slots)
        elif self.had_to_wait and is_other_free:
            at_its_pace = math.ceil(self.per_s * WAIT_S)
            limit = min(slots, max(LEAST_WAITING, at_its_pace))
        return max(0, limit - self.waiting)
