"""Queues: the tree, and simple queues with both directions in one property."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis
from poller.sim.routeros.menu_tables import (
    Live,
    Scene,
    Table,
    counted,
    dice,
    flag,
    number,
    swing,
    text,
)


class Queue(NamedTuple):
    number: int
    name: str
    parent: str
    limit: int
    rate: float  # octets per second of upload; download is four times that
    disabled: bool


def _queues(chassis: Chassis, kind: str, parent: str) -> Sequence[Queue]:
    luck = dice(chassis, kind)
    made = []
    for n in range(1, chassis.model.setup.queues + 1):
        above = parent if n % 3 == 1 else f"{kind}-{n - 1}"
        made.append(
            Queue(n, f"{kind}-{n}", above, n * 10_000_000, luck.uniform(100, 200_000), n % 7 == 0)
        )
    return made


def _now(scene: Scene, queue: Queue) -> int:
    """Return the bits per second now."""
    return 0 if queue.disabled else int(swing(scene, queue.rate * 8, 0.5, 300, queue.number))


def _grown(queue: Queue, scene: Scene, share: float) -> str:
    return "0" if queue.disabled else counted(scene, queue.rate * share, queue.number)


TREE = Table(
    "/queue/tree",
    lambda chassis: _queues(chassis, "tree", "global"),
    {
        ".id": number,
        "name": lambda queue: queue.name,
        "parent": lambda queue: queue.parent,
        "packet-mark": lambda queue: f"mark-{queue.number}" if queue.number % 3 != 1 else "",
        "limit-at": text("0"),
        "max-limit": lambda queue: str(queue.limit),
        "priority": lambda queue: str(1 + queue.number % 8),
        "queue": text("default-small"),
        "invalid": text("false"),
        "disabled": lambda queue: flag(queue.disabled),
    },
    {
        "rate": lambda scene, queue: str(_now(scene, queue)),
        "packet-rate": lambda scene, queue: str(_now(scene, queue) // 5000),
        "bytes": lambda scene, queue: _grown(queue, scene, 1),
        "packets": lambda scene, queue: _grown(queue, scene, 1 / 700),
        "queued-bytes": lambda scene, queue: str(_now(scene, queue) // 9000 * 60),
        "queued-packets": lambda scene, queue: str(_now(scene, queue) // 9000),
        "dropped": lambda scene, queue: _grown(queue, scene, 1 / 90_000),
    },
)


def _both(up: Live, down: float = 4.0) -> Live:
    """Join the values for upload and download with a slash."""
    return lambda scene, queue: f"{up(scene, queue)}/{int(int(up(scene, queue) or 0) * down)}"


SIMPLE = Table(
    "/queue/simple",
    lambda chassis: _queues(chassis, "customer", "none"),
    {
        ".id": number,
        "name": lambda queue: queue.name,
        "target": lambda queue: f"10.20.0.{queue.number + 10}/32",
        "parent": lambda queue: queue.parent,
        "packet-marks": text(""),
        "priority": text("8/8"),
        "queue": text("default-small/default-small"),
        "limit-at": text("0/0"),
        "max-limit": lambda queue: f"{queue.limit}/{queue.limit * 4}",
        "invalid": text("false"),
        "dynamic": text("false"),
        "disabled": lambda queue: flag(queue.disabled),
        "comment": lambda queue: f"customer {queue.number}" if queue.number % 2 else None,
    },
    {
        "rate": _both(lambda scene, queue: str(_now(scene, queue))),
        "packet-rate": _both(lambda scene, queue: str(_now(scene, queue) // 5000)),
        "bytes": _both(lambda scene, queue: _grown(queue, scene, 1)),
        "packets": _both(lambda scene, queue: _grown(queue, scene, 1 / 700)),
        "queued-bytes": _both(lambda scene, queue: str(_now(scene, queue) // 9000 * 60), 2.0),
        "queued-packets": _both(lambda scene, queue: str(_now(scene, queue) // 9000), 2.0),
        "dropped": _both(lambda scene, queue: _grown(queue, scene, 1 / 90_000), 3.0),
    },
)

TABLES = (TREE, SIMPLE)
