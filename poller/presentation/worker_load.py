"""The load of a worker in words: batches it polls, its slots, and batches beyond them."""

from __future__ import annotations

from poller.domain.record.overview import Worker
from poller.presentation import formatting


def busy_slots(worker: Worker) -> int:
    """Batches that take a slot. A batch that only waits for slow devices lends its slot."""
    return max(0, worker.in_flight - worker.lent)


def in_words(worker: Worker) -> str:
    """`16 of 16 batches and 11 that wait for slow devices`"""
    slots = formatting.counted(worker.slots, "batch", "batches")
    text = f"{formatting.exact(busy_slots(worker))} of {slots}"
    if worker.lent:
        wait = "waits" if worker.lent == 1 else "wait"
        text += f" and {formatting.exact(worker.lent)} that {wait} for slow devices"
    return text


def short(worker: Worker) -> str:
    """`16 of 16 + 11`: the same for a narrow column."""
    text = f"{formatting.count(busy_slots(worker))} of {formatting.count(worker.slots)}"
    return f"{text} + {formatting.count(worker.lent)}" if worker.lent else text
