"""The series of a shape as a store outside knows them: filtered, with labels of their target.

Series of one row of a table share their labels, so that the work is done once per row.
"""

from __future__ import annotations

from typing import NamedTuple

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import outside_labels
from poller.domain.metrics.reading import Labels, SeriesSet
from poller.observability import logs
from poller.sinks.label_options import LabelOptions
from poller.sinks.series_filter import SeriesFilter, SeriesFilterOptions

log = logs.get(__name__)

#: Names of labels whose collision was logged. Devices choose names, so that they are bounded.
_LOGGED = 256


class SeriesOptions(LabelOptions, SeriesFilterOptions):
    """Options about the series of a sink: which ones, and with which labels."""


class OutsideSeries(NamedTuple):
    """One series in the store. Series of one row have the same object as `labels`."""

    column: int  # in the values of the poll
    name: str  # a valid name of a metric
    labels: Labels  # sorted by name, valid, without empty ones


class OutsideShape(NamedTuple):
    """The series of a shape in the store, and the series that equal an earlier one there."""

    series: list[OutsideSeries]
    doubled: list[OutsideSeries]


class SentLabels(NamedTuple):
    """The labels of a target that are sent, and the verdicts of the filter about all of them."""

    labels: Labels
    verdicts: tuple[bool | None, ...]


class SeriesMapper:
    """Maps shapes of targets for one sink. One thread uses it; many may ask for labels."""

    def __init__(self, options: SeriesOptions, sink: str) -> None:
        self._options = options
        self._sink = sink
        self._filter = SeriesFilter(options)
        self._valid_names: dict[str, str] = {}
        self._collisions: set[str] = set()

    def outside(self, target: PollTarget, shape: SeriesSet) -> OutsideShape:
        """Return the series of a shape that are sent, in the order of the shape."""
        added = self._added_labels(target)
        rows: dict[int, Labels | None] = {}  # by identity of the labels; None: not sent
        unique: dict[Labels, Labels] = {}
        seen: set[tuple[str, int]] = set()
        mapped = OutsideShape([], [])
        for index, series in enumerate(shape.series):
            if not self._filter.takes_metric(series.name):
                continue
            row = id(series.labels)
            if row not in rows:
                labels = self._labels(series.labels, added)
                rows[row] = unique.setdefault(labels, labels) if labels is not None else None
            labels = rows[row]
            if labels is None:
                continue
            name = self._valid_name(series.name)
            is_doubled = (name, id(labels)) in seen
            seen.add((name, id(labels)))
            place = mapped.doubled if is_doubled else mapped.series
            place.append(OutsideSeries(index, name, labels))
        return mapped

    def target_labels(self, target: PollTarget) -> SentLabels:
        """Return what the store has of a target in every series. Other labels end no series."""
        labels = self._added_labels(target)
        return SentLabels(self._filter.kept_labels(labels), self._filter.verdicts(labels))

    def _added_labels(self, target: PollTarget) -> Labels:
        """Return the labels of a target before any of them is dropped: the filter reads them."""
        return outside_labels.target_labels(target, self._options.names, self._options.fixed)

    def _labels(self, own: Labels, added: Labels) -> Labels | None:
        joined = outside_labels.joined(own, added)
        if joined.renamed:
            self._log_collisions(joined.renamed)
        if not self._filter.takes_labels(joined.labels):
            return None
        return self._filter.kept_labels(joined.labels)

    def _valid_name(self, name: str) -> str:
        valid = self._valid_names.get(name)
        if valid is None:
            if len(self._valid_names) >= _LOGGED * 32:
                self._valid_names.clear()
            valid = self._valid_names[name] = outside_labels.valid_metric_name(name)
        return valid

    def _log_collisions(self, names: tuple[str, ...]) -> None:
        """Log each label that had to give way, once per process."""
        for name in names:
            if name not in self._collisions and len(self._collisions) < _LOGGED:
                self._collisions.add(name)
                log.warning(
                    "label_renamed",
                    sink=self._sink,
                    label=name,
                    renamed=outside_labels.EXPORTED + name,
                    hint="a label of the target has this name; label_names of the sink changes it",
                )


def series_text(series: OutsideSeries) -> str:
    """Return the series as people write it: `name{label="text"}`."""
    labels = ",".join(f'{name}="{text}"' for name, text in series.labels)
    return f"{series.name}{{{labels}}}"
