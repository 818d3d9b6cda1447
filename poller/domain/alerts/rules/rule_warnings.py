"""What looks wrong in a rule that can be saved: names that no stored poll has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from poller.domain.alerts import text_template
from poller.domain.alerts.rule import InterfaceDown, Measure, Rule, Threshold
from poller.domain.inventory.did_you_mean import nearest
from poller.domain.metrics.reading import SeriesSet
from poller.domain.metrics.series import Kind

#: Metrics that say what a link can carry.
_SPEEDS = ("ifHighSpeed", "routeros_interface_rate")
_STATES = ("ifOperStatus", "routeros_interface_running")
#: Names that one sentence lists.
_LISTED = 8


@dataclass(slots=True)
class KnownMetric:
    """A metric of stored polls: its kinds, and the labels of its series."""

    kinds: set[Kind] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """The metrics of the newest stored shapes. `shapes` is how many were looked at."""

    metrics: Mapping[str, KnownMetric]
    shapes: int


def known_series(shapes: Iterable[SeriesSet]) -> KnownSeries:
    """Return the metrics of these shapes."""
    metrics: dict[str, KnownMetric] = {}
    count = 0
    for shape in shapes:
        count += 1
        for series in shape.series:
            known = metrics.setdefault(series.name, KnownMetric())
            known.kinds.add(series.kind)
            known.labels.update(name for name, _ in series.labels)
    return KnownSeries(metrics, count)


def warnings(rule: Rule, known: KnownSeries) -> list[str]:
    """Return what looks wrong, each with the field and what exists. The rule can be saved."""
    if not isinstance(rule.condition, Threshold | InterfaceDown):
        return []
    if not known.shapes:
        return ["no poll is stored yet, so the names of metrics and labels could not be checked"]
    if isinstance(rule.condition, InterfaceDown):
        return list(_of_interface(rule, rule.condition, known))
    return list(_of_threshold(rule, rule.condition, known))


def _of_interface(rule: Rule, condition: InterfaceDown, known: KnownSeries) -> Iterator[str]:
    found = [known.metrics[name] for name in _STATES if name in known.metrics]
    if not found:
        yield f"when.is: no stored poll has the state of an interface ({', '.join(_STATES)})"
        return
    yield from _of_labels(rule, condition.labels, _united(found), "interfaces")


def _of_threshold(rule: Rule, condition: Threshold, known: KnownSeries) -> Iterator[str]:
    found = known.metrics.get(condition.metric)
    if found is None:
        near = nearest(condition.metric, known.metrics)
        meant = f"; did you mean {near}?" if near else f"; there are {_some(known.metrics)}"
        yield f"when.metric: no stored poll has {condition.metric}{meant}"
        return
    is_counter = Kind.COUNTER in found.kinds
    if condition.measure is Measure.VALUE and found.kinds == {Kind.COUNTER}:
        yield f"when.measure: {condition.metric} is a counter that only grows; write measure: rate"
    if condition.measure is not Measure.VALUE and not is_counter:
        yield f"when.measure: {condition.metric} is no counter and has no rate; write value"
    needs_speed = condition.measure is Measure.PERCENT_OF_SPEED
    if needs_speed and not any(name in known.metrics for name in _SPEEDS):
        yield f"when.measure: no stored poll has a speed ({', '.join(_SPEEDS)})"
    yield from _of_labels(rule, condition.labels, found.labels, condition.metric)


def _of_labels(
    rule: Rule, wanted: Iterable[tuple[str, str]], known: Collection[str], of: str
) -> Iterator[str]:
    there = _some(known) if known else "none"
    for name, _ in wanted:
        if name not in known:
            yield f"when.labels: series of {of} have no label {name}; there are {there}"
    for name in text_template.labels_of(rule.text):
        if name not in known:
            yield f"text: series of {of} have no label {name}; there are {there}"


def _united(found: Iterable[KnownMetric]) -> set[str]:
    return {label for each in found for label in each.labels}


def _some(names: Collection[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return ", ".join(listed[:_LISTED]) + more
