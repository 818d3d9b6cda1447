"""Whether an edited target has other labels in a store that is told of ends."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import series_ends
from poller.observability import logs
from poller.sinks.made_sink import MadeSink

log = logs.get(__name__)


class TargetLabels:
    """The labels of targets in the stores of all sinks that take ends. Safe for threads."""

    def __init__(self, sinks: Sequence[MadeSink]) -> None:
        self._sinks = [made for made in sinks if made.takes_ends]

    def differ(self, one: PollTarget, other: PollTarget) -> bool:
        """Whether any store has other labels for the two."""
        if one is other:
            return False
        return any(_labels(made, one) != _labels(made, other) for made in self._sinks)


def _labels(made: MadeSink, target: PollTarget) -> Hashable:
    """The labels that a sink states; without a statement, all facts that can be labels."""
    state = getattr(made.sink, "target_labels", None)
    if state is None:
        return series_ends.label_facts(target)
    try:
        labels: Hashable = state(target)
    except Exception as error:  # noqa: BLE001  door: a plugin's sink
        log.warning("target_labels_failed", sink=made.name, error=type(error).__name__)
        return series_ends.label_facts(target)
    return labels
