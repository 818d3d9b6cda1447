"""When a rule would have fired: the times in which its condition held, after `for` and `keep`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from poller.domain.alerts.alert import Subject
from poller.domain.record.event_kinds import Event, Kind


@dataclass(frozen=True, slots=True)
class Held:
    """A time in which a condition held for a subject; `until_ms` is 0 while it still holds."""

    subject: Subject
    since_ms: int
    until_ms: int
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class Firing(NamedTuple):
    """An alert that there would have been. `ended_ms` is 0 if it would still be open."""

    held: Held
    fired_ms: int
    ended_ms: int


def firings(held: Iterable[Held], for_ms: int, keep_ms: int, now_ms: int) -> list[Firing]:
    """Return the alerts of times in which a condition held, in the order in which they fire.

    A gap that is shorter than `keep_ms` does not end an alert that fired. What held for less than
    `for_ms` makes none.
    """
    by_subject: dict[str, list[Held]] = {}
    for each in held:
        by_subject.setdefault(each.subject.identity(""), []).append(each)
    found: list[Firing] = []
    for spans in by_subject.values():
        spans.sort(key=lambda each: each.since_ms)
        found.extend(_of_subject(spans, for_ms, keep_ms, now_ms))
    return sorted(found, key=lambda each: each.fired_ms)


def _of_subject(spans: Sequence[Held], for_ms: int, keep_ms: int, now_ms: int) -> Iterator[Firing]:
    firing: Firing | None = None
    for span in spans:
        end_ms = span.until_ms
        if firing is not None and firing.ended_ms and span.since_ms < firing.ended_ms:
            ended_ms = end_ms + keep_ms if end_ms else 0
            firing = firing._replace(ended_ms=ended_ms)
            continue
        if firing is not None:
            yield firing
            firing = None
        fired_ms = span.since_ms + for_ms
        if fired_ms <= (end_ms or now_ms):
            firing = Firing(span, fired_ms, end_ms + keep_ms if end_ms else 0)
    if firing is not None:
        is_open = not firing.ended_ms or firing.ended_ms > now_ms
        yield firing._replace(ended_ms=0) if is_open else firing


class Pair(NamedTuple):
    """The events that begin and end a condition."""

    bad: Kind
    good: Kind


def held_by_events(
    events: Iterable[Event], pair: Pair, subject_of: Mapping[str, Subject], since_ms: int
) -> list[Held]:
    """Return the times between a bad and a good event of a subject; events are oldest first.

    `subject_of` has the subjects by the key of `event_key`; others are left out. A subject whose
    first event is a good one was bad since `since_ms`, or before.
    """
    began: dict[str, Event] = {}
    seen: set[str] = set()
    found: list[Held] = []
    for event in events:
        key = event_key(event)
        if key not in subject_of or event.kind not in pair:
            continue
        if event.kind is pair.bad:
            began.setdefault(key, event)
        elif key in began:
            found.append(_held(subject_of[key], began.pop(key), event.at_ms))
        elif key not in seen:
            found.append(Held(subject_of[key], since_ms, event.at_ms, labels=_labels(event)))
        seen.add(key)
    found += [_held(subject_of[key], event, 0) for key, event in began.items()]
    return found


def event_key(event: Event) -> str:
    """Return what an event is about: `target:7`, `device:3` or `site:ams`."""
    if event.kind in (Kind.TARGET_FAILED, Kind.TARGET_RECOVERED):
        return f"target:{event.target_id}"
    if event.kind in (Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED):
        return f"device:{event.device_id}"
    return f"site:{event.data.get('site', '')}"


def with_codes(held: Iterable[Held], codes: Sequence[str]) -> list[Held]:
    """Return the times whose first failure has one of these codes; all without codes."""
    return [each for each in held if not codes or each.labels.get("code") in codes]


def without_polls(
    subject: Subject, good_ms: Iterable[int], longest_ms: int, since_ms: int, now_ms: int
) -> Iterator[Held]:
    """Yield the times in which a target had no good poll for too long; instants are in order.

    The time before its first good poll is not known, so it is not counted.
    """
    before_ms: int | None = None
    for at_ms in good_ms:
        if before_ms is not None and at_ms - before_ms > longest_ms:
            yield Held(subject, max(since_ms, before_ms + longest_ms), at_ms)
        before_ms = at_ms
    if before_ms is not None and now_ms - before_ms > longest_ms:
        yield Held(subject, max(since_ms, before_ms + longest_ms), 0)


def _held(subject: Subject, began: Event, until_ms: int) -> Held:
    return replace(Held(subject, began.at_ms, until_ms), labels=_labels(began))


def _labels(event: Event) -> dict[str, str]:
    code = event.data.get("code")
    return {"code": str(code)} if code else {}
