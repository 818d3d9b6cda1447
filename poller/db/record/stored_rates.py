"""The rates of targets, made from what is stored: one statement for the polls of all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Engine

from poller.db.inventory import targets
from poller.db.inventory.targets import Target
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.metrics import rates, series_identity
from poller.domain.metrics.rates import Answer, Question
from poller.domain.metrics.reading import Kind

#: A view of the last polls shows so many rates; one of a span reads at most so many polls of a target.
GLANCE = 12
MOST_POLLS = 2000


@dataclass(frozen=True, slots=True)
class Asked:
    """`choose` takes some of the counters' names; without `since_ms` the last few polls are enough."""

    choose: Callable[[Collection[str]], Collection[str]] = lambda names: names
    most: int = 200
    since_ms: int = 0
    skip: int = 0  # of all counters together


@dataclass(frozen=True, slots=True)
class Rated:
    """`names` are those of all its counters; `cut` when the span has more polls than one may ask for."""

    target: Target
    polls: int
    names: Collection[str]
    answer: Answer
    cut: bool = False


def of_device(engine: Engine, device: str, asked: Asked) -> list[Rated]:
    """Of all its targets. Raises NotFound."""
    return of_targets(engine, targets.of_device(engine, device), asked)


def of_targets(engine: Engine, chosen: Sequence[Target], asked: Asked) -> list[Rated]:
    """In the order of the targets; one that was never polled has no lines. `most` is for all together."""
    polls = most_polls(asked)
    return together(
        chosen,
        stored_readings.history(engine, [target.id for target in chosen], polls, asked.since_ms),
        asked,
    )


def most_polls(asked: Asked) -> int:
    return (MOST_POLLS if asked.since_ms else GLANCE) + 1


def together(
    chosen: Sequence[Target], stored: Mapping[int, Sequence[Stored]], asked: Asked
) -> list[Rated]:
    """Of targets by what is stored of each. Which counters are wanted is asked once, of the names of all of them."""
    wanted = asked.choose(
        dict.fromkeys(name for target in chosen for name in _names(stored.get(target.id, ())))
    )
    found: list[Rated] = []
    for target in chosen:
        left = replace(
            asked,
            choose=lambda _: wanted,
            most=asked.most - sum(len(each.answer.lines) for each in found),
            skip=max(0, asked.skip - sum(each.answer.total for each in found)),
        )
        found.append(_rated(target, stored.get(target.id, ()), left))
    return found


def _rated(target: Target, stored: Sequence[Stored], asked: Asked) -> Rated:
    names = _names(stored)
    wanted = frozenset(asked.choose(names))
    # The oldest of a full answer has polls before it that were not asked for: it is only there for the next one.
    cut = len(stored) == most_polls(asked)
    question = Question(
        target.max_ms or target.interval_ms,
        series_identity.chosen(target.options),
        lambda series: series.name in wanted,
        asked.most,
        max(asked.since_ms, stored[0].at_ms + 1 if cut else 0),
        asked.skip,
    )
    answer = rates.answer([(each.at_ms, each.readings) for each in stored], question)
    return Rated(target, len(stored), names, answer, cut and bool(asked.since_ms))


def _names(stored: Sequence[Stored]) -> Collection[str]:
    """As the newest poll has them; behind it those that a table had which did not answer this time."""
    shapes = {poll.readings.series.id: poll.readings.series for poll in reversed(stored)}
    return dict.fromkeys(
        s.name for shape in shapes.values() for s in shape.series if s.kind is Kind.COUNTER
    )
