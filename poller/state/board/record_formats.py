"""Formats of the records on the board. `lua/prelude.lua` holds the same formats for the scripts.

    spec     version|interval|timeout|queue     of an enabled target; times in ms
    run      token|plan|attempts|call           of a target in flight; plan in ms; the call
                                                begins with the worker, see domain/record/run.py
    opened   until|since|operator               of a breaker that is opened by hand; times in ms;
                                                the reason is on a line of its own

A record that another program damaged is read as a missing one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record import event_kinds
from poller.domain.record.event_kinds import Event
from poller.state.board.board_values import Report

#: A score below this is no instant: an operator wants the target polled at once.
FIRST_INSTANT_MS = 1000

_SPEC = re.compile(r"(\d+)\|(\d+)\|(\d+)\|(.+)", re.ASCII | re.DOTALL)
_OPENING = re.compile(r"(\d+)\|(\d+)\|(.*)", re.ASCII | re.DOTALL)


class Spec(NamedTuple):
    """The `spec` record of a target."""

    version: int
    interval_ms: int
    timeout_ms: int
    queue: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The `opened` record of a target: an operator opened its breaker."""

    until_ms: int
    since_ms: int
    who: str
    reason: str = ""  # one line

    def pack(self) -> str:
        """The record as text."""
        text = f"{self.until_ms}|{self.since_ms}|{self.who}"
        return f"{text}\n{self.reason}" if self.reason else text


def pack_spec(target: TargetSpec) -> str:
    """The `spec` record of a target; empty for a disabled one, which is not on the board."""
    if not target.enabled:
        return ""
    return f"{target.version}|{target.interval_ms}|{target.timeout_ms}|{target.queue}"


def parse_spec(text: str | None) -> Spec | None:
    """The record, or None if it is missing or damaged."""
    match = _SPEC.fullmatch(text or "")
    if match is None:
        return None
    version, interval_ms, timeout_ms, queue = match.groups()
    return Spec(
        version=int(version),
        interval_ms=int(interval_ms),
        timeout_ms=int(timeout_ms),
        queue=queue,
    )


def version_and_queue(spec: str) -> tuple[int, str]:
    """The version and the queue in a `spec` record that `start` accepted."""
    version, _, _, queue = spec.split("|", 3)
    return int(version), queue


def version(spec: str | None) -> int | None:
    """The version in a `spec` record; None if the record is missing or damaged."""
    head, bar, _ = (spec or "").partition("|")
    return int(head) if bar and head.isdecimal() else None


def interval_ms(spec: str | None) -> int:
    """The interval in a `spec` record; 0 if the record is missing or damaged."""
    parsed = parse_spec(spec)
    return parsed.interval_ms if parsed else 0


def plan_ms(run: str) -> int | None:
    """The planned instant in a `run` record, or None if it holds none."""
    plan = run.split("|", 2)[1]
    return int(plan) if plan.isdigit() else None


def report_arguments(report: Report) -> list[Any]:
    """A report as arguments of `finish`; "" stands for an event that it does not have."""
    siblings = ",".join(map(str, report.siblings))
    events = (report.down, report.up, report.failing, report.recovered)
    names = [report.target_id, report.device_id, report.site, siblings]
    return [*names, *map(_event_text, events)]


def _event_text(event: Event | None) -> str:
    """The fields of an entry in the stream of events, as a JSON list."""
    if event is None:
        return ""
    fields = event_kinds.pack(event)
    return json.dumps(list(chain.from_iterable(fields.items())))


def parse_opening(text: str | None, now_ms: int) -> Opening | None:
    """The record, or None if it is missing, damaged or over."""
    match = _OPENING.fullmatch(text or "")
    if match is None:
        return None

    until_ms, since_ms, rest = match.groups()
    who, _, reason = rest.partition("\n")
    opening = Opening(int(until_ms), int(since_ms), who, reason)
    is_over = opening.until_ms <= now_ms
    return None if is_over else opening
