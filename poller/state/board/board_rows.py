"""Targets on the board with status, place, opening and flight, each read in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redis.client import Pipeline

from poller.domain.batched import batched
from poller.domain.record import run, target_status
from poller.domain.why.target_facts import BoardRow, Flight, HandOpening
from poller.state.board import record_formats
from poller.state.board.record_formats import FIRST_INSTANT_MS, Spec
from poller.state.keys import Keys

#: The places in the order in which they are read.
_PLACES = ("due", "urgent", "in_flight", "parked", "held")
#: Places whose score is the next instant of the target.
_TIMED_PLACES = ("due", "urgent", "parked")


def parse_specs(ids: Sequence[int], texts: Sequence[str | None]) -> dict[int, Spec]:
    """The readable specs of these targets."""
    specs = {}
    for target_id, text in zip(ids, texts, strict=True):
        spec = record_formats.parse_spec(text)
        if spec:
            specs[target_id] = spec
    return specs


def add_commands(pipe: Pipeline, keys: Keys, specs: Mapping[int, Spec]) -> None:
    """Ask for everything that `parse` needs. There must be at least one spec."""
    members = [str(target_id) for target_id in specs]
    pipe.hmget(keys.status, members)
    pipe.hmget(keys.opened, members)
    pipe.hmget(keys.run, members)
    for target_id, spec in specs.items():
        due, urgent = keys.due(spec.queue), keys.urgent(spec.queue)
        for place in (due, urgent, keys.inflight, keys.parked, keys.held):  # as in _PLACES
            pipe.zscore(place, str(target_id))


def replies(specs: Mapping[int, Spec]) -> int:
    """The number of replies to the commands."""
    return 3 + len(_PLACES) * len(specs)


def parse(specs: Mapping[int, Spec], found: Sequence[Any], now_ms: int) -> dict[int, BoardRow]:
    """The targets from the replies, by id."""
    statuses, openings, runs, *scores = found
    by_target = batched(scores, len(_PLACES))
    records = zip(specs.items(), statuses, openings, runs, by_target, strict=True)
    rows = {}
    for (target_id, spec), status, opening, flight, target_scores in records:
        place, score = _place(target_scores)
        rows[target_id] = BoardRow(
            place=place,
            at_ms=score if place in _TIMED_PLACES and score >= FIRST_INSTANT_MS else 0,
            queue=spec.queue,
            interval_ms=spec.interval_ms,
            timeout_ms=spec.timeout_ms,
            status=target_status.unpack(status or ""),
            opening=_opening(opening, now_ms),
            flight=_flight(flight, score) if place == "in_flight" else None,
        )
    return rows


def _place(scores: Sequence[float | None]) -> tuple[str, int]:
    for place, score in _finite(scores):
        return place, score
    return "", 0


def _finite(scores: Sequence[float | None]) -> Iterator[tuple[str, int]]:
    """The places that hold the target; a score that another program set to infinity is 0."""
    for place, score in zip(_PLACES, scores, strict=True):
        if score is not None:
            is_number = abs(score) < float("inf")
            yield place, int(score) if is_number else 0


def _opening(text: str | None, now_ms: int) -> HandOpening | None:
    opening = record_formats.parse_opening(text, now_ms)
    if opening is None:
        return None
    return HandOpening(opening.until_ms, opening.since_ms, opening.who, opening.reason)


def _flight(record: str | None, lease_ms: int) -> Flight | None:
    """The flight of a `run` record (token|plan|attempts|call); None for a damaged one."""
    parts = (record or "").split("|")
    if len(parts) != 4 or not (parts[1].isdigit() and parts[2].isdigit()):
        return None
    token, plan_ms, attempts, call = parts
    return Flight(token, int(plan_ms), int(attempts), lease_ms, run.runner_of(call))
