"""Counters and histograms in plain dictionaries, safe for threads.

One use costs a lock and a dictionary entry, less than a microsecond. Label values are few and
known: never a device, an address or a text of a device.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

#: Upper edges of the buckets of a call to a store, in seconds.
CALL_EDGES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

#: Samples of one family: name after the family's, labels, value.
Sample = tuple[str, Mapping[str, str], float]


class Instrument:
    """A metric family of this process."""

    kind = ""

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        self._lock = threading.Lock()

    def samples(self) -> list[Sample]:
        """The present values."""
        raise NotImplementedError

    def clear(self) -> None:
        """Start again, in a forked child: the numbers so far are those of its parent."""
        raise NotImplementedError

    def _named(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


class Counter(Instrument):
    """A number that grows. Its samples have the suffix `_total`."""

    kind = "counter"

    def __init__(self, name: str, text: str, *labels: str) -> None:
        super().__init__(name, text, *labels)
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count `by` more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + by

    def set_total(self, total: float, *labels: str) -> None:
        """Set the number to that of another counter of this process."""
        with self._lock:
            self._values[labels] = total

    def samples(self) -> list[Sample]:
        with self._lock:
            values = dict(self._values)
        return [("_total", self._named(labels), value) for labels, value in values.items()]

    def clear(self) -> None:
        self._lock = threading.Lock()  # the parent may have held it
        self._values = {}


class Gauge(Instrument):
    """A number that goes up and down."""

    kind = "gauge"

    def __init__(self, name: str, text: str, *labels: str) -> None:
        super().__init__(name, text, *labels)
        self._values: dict[tuple[str, ...], float] = {}

    def set(self, value: float, *labels: str) -> None:
        with self._lock:
            self._values[labels] = value

    def samples(self) -> list[Sample]:
        with self._lock:
            values = dict(self._values)
        return [("", self._named(labels), value) for labels, value in values.items()]

    def clear(self) -> None:
        self._lock = threading.Lock()
        self._values = {}


class Histogram(Instrument):
    """Durations in buckets. Each value is counted in one bucket, and summed."""

    kind = "histogram"

    def __init__(
        self, name: str, text: str, *labels: str, edges_s: tuple[float, ...] = CALL_EDGES_S
    ) -> None:
        super().__init__(name, text, *labels)
        self._edges_s = edges_s
        self._buckets: dict[tuple[str, ...], list[float]] = {}  # counts, and the sum at the end

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one value."""
        index = bisect_left(self._edges_s, seconds)
        with self._lock:
            buckets = self._buckets.get(labels)
            if buckets is None:
                buckets = self._buckets[labels] = [0] * (len(self._edges_s) + 2)
            buckets[index] += 1
            buckets[-1] += seconds

    @contextmanager
    def timed(self, *labels: str) -> Iterator[None]:
        """Count the time that the context takes, also if it fails."""
        started_mono = time.monotonic()
        try:
            yield
        finally:
            self.observe(time.monotonic() - started_mono, *labels)

    def samples(self) -> list[Sample]:
        with self._lock:
            rows = {labels: list(buckets) for labels, buckets in self._buckets.items()}
        samples: list[Sample] = []
        for values, (*counts, sum_s) in rows.items():
            labels = self._named(values)
            total = 0.0
            for edge_s, count in zip((*self._edges_s, float("inf")), counts, strict=True):
                total += count
                edge = "+Inf" if edge_s == float("inf") else f"{edge_s:g}"
                samples.append(("_bucket", {**labels, "le": edge}, total))
            samples.append(("_count", labels, total))
            samples.append(("_sum", labels, sum_s))
        return samples

    def clear(self) -> None:
        self._lock = threading.Lock()
        self._buckets = {}
