"""Times of the batches of each queue: how long they held slots of workers, and how long their polls
waited for a worker.

The fields are those of the Redis hash `times:<n>`, which holds ten seconds:

| field               | value                                                                    |
|---------------------|--------------------------------------------------------------------------|
| `<queue>|slot`      | the time that batches held slots, in milliseconds                        |
| `<queue>|wait|<n>`  | polls whose wait was in the n-th bucket of `histogram`                   |

A wait is the time from the claim by the leader to the first start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics import histogram


@dataclass(slots=True)
class QueueTimes:
    """The times of one queue, over as much time as its fields cover."""

    slot_ms: int = 0
    waits: Counter[int] = field(default_factory=Counter)  # bucket -> polls

    def wait_ms(self, share: float) -> float | None:
        """The wait that this share of the polls did not exceed; None without polls."""
        return histogram.quantile_ms(self.waits, share) if self.waits else None


def of_round(queue: str, waits_ms: Sequence[int], slot_ms: int) -> dict[str, int]:
    """The increments of one round."""
    counts = {}
    if slot_ms:
        counts[f"{queue}|slot"] = slot_ms
    for bucket, number in Counter(map(histogram.bucket, waits_ms)).items():
        counts[f"{queue}|wait|{bucket}"] = number
    return counts


def parse(fields: Iterable[tuple[str, int]]) -> Mapping[str, QueueTimes]:
    """The sums of fields, by queue. A field of a later release is left out."""
    found: dict[str, QueueTimes] = {}
    for name, value in fields:
        queue, _, kind = name.partition("|")
        times = found.setdefault(queue, QueueTimes())
        if kind == "slot":
            times.slot_ms += value
        elif kind.startswith("wait|") and kind[5:].isdecimal():
            times.waits[int(kind[5:])] += value
    return found
