"""What do fifty rules cost a poll?

The judge alone is measured in this process, on polls of if_mib that it is given. The whole platform
is measured with and without rules: two runs, whose difference is smaller than their noise unless
the machine is quiet.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Engine

from benchmarks import fifty_rules, progress, watched
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Grid, Section
from benchmarks.sink_polls import SinkPolls
from benchmarks.stage import Stage, stage
from benchmarks.watched import Watched
from poller import errors
from poller.db.bounded_reads import BoundedReads
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import ReadingSet
from poller.domain.record.target_status import Status
from poller.sinks.api import Sample
from poller.state.board.board_values import Started
from poller.workers.alerts.poll_judge import PollJudge
from poller.workers.alerts.rule_cache import RuleCache
from poller.workers.alerts.stored_before import StoredBefore
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.target_cache import CachedTarget

#: The goal: rules take at most this share of a poll's CPU.
SHARE_PERCENT = 3.0
#: Polls of one round of a worker.
ROUND_POLLS = 64
LOADED_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Size:
    targets: int  # of the judge alone
    rounds: int  # after the first; the median counts
    devices: int  # of the whole platform
    interval_s: float
    measure_s: float


@dataclass(frozen=True, slots=True)
class Judged:
    """CPU of the judge for one poll, in microseconds."""

    first_us: float  # of a target that is new to the worker
    idle_us: float  # without a rule
    later_us: float


def run(size: Size, stage: Stage) -> Findings:
    polls = SinkPolls(size.targets, time.time_ns() // 1_000_000)
    judged = _judged(size, stage.services.engine, polls)
    before, after = _measured(size, has_rules=False), _measured(size, has_rules=True)
    share = judged.later_us / 1000 / before.poll_ms * 100
    figures = [
        Figure("judge_us", "judging a poll by 50 rules", judged.later_us, "us CPU"),
        Figure("judge_first_us", "first poll of a target", judged.first_us, "us CPU"),
        Figure("judge_idle_us", "a poll without rules", judged.idle_us, "us CPU"),
        Figure("before_ms", "CPU of a poll without rules, platform", before.poll_ms, "ms"),
        Figure("after_ms", "CPU of a poll with 50 rules, platform", after.poll_ms, "ms"),
        Figure(
            "share_percent",
            "judging, of the CPU of a poll",
            share,
            "%",
            at_most=SHARE_PERCENT,
        ),
        Figure(
            "worker_mb",
            "memory that the rules take in a worker",
            after.used.ended_mb["worker"] - before.used.ended_mb["worker"],
            "MB",
        ),
    ]
    roles = [role for role in before.role_ms if role != "agents"]
    grid = Grid(
        ["without rules", "50 rules"],
        [
            ("CPU of a poll", "ms", [before.poll_ms, after.poll_ms]),
            *((f"  {role}", "ms", [before.role_ms[role], after.role_ms[role]]) for role in roles),
        ],
    )
    note = (
        f"{polls.samples} samples a poll, {size.targets:,} targets with shapes of their own; "
        f"platform: {size.devices:,} devices at {size.interval_s:g} s"
    )
    return Findings(figures, notes=[note], grid=grid)


def _judged(size: Size, engine: Engine, polls: SinkPolls) -> Judged:
    """Measure the judge alone."""
    stored = fifty_rules.store(engine)
    judge, idle = _judge(engine), _judge(engine)
    _wait_until_loaded(judge, stored.version)
    targets: dict[int, CachedTarget] = {}
    first_us = _round_us(judge, _finished(polls.round(), targets), stored.version)
    later_us, idle_us = [], []
    with progress.shown("judging", size.rounds) as show:
        for number in range(size.rounds):
            finished = _finished(polls.round(), targets)
            later_us.append(_round_us(judge, finished, stored.version))
            idle_us.append(_round_us(idle, finished, 0))
            show(number)
    return Judged(first_us, statistics.median(idle_us), statistics.median(later_us))


def _judge(engine: Engine) -> PollJudge:
    reads = BoundedReads()
    return PollJudge(RuleCache(engine, reads), StoredBefore(engine, reads))


def _wait_until_loaded(judge: PollJudge, version: int) -> None:
    """Let the judge read the rules, as the first batch of a worker does."""
    ends = time.monotonic() + LOADED_WITHIN_S
    while judge.rules_version != version:
        judge.judge_round([], set(), version)
        if time.monotonic() > ends:
            raise errors.StoreUnavailable(f"rules not read within {LOADED_WITHIN_S:g} s")
        time.sleep(0.05)


def _finished(samples: Sequence[Sample], targets: dict[int, CachedTarget]) -> list[FinishedPoll]:
    """Return polls as a worker has them at the end of a round."""
    finished = []
    for sample in samples:
        target = sample.target
        cached = targets.setdefault(target.id, CachedTarget(target, 1))
        # As the snmp collector makes them: like devices share the layout of their shapes.
        if "shape" not in cached.memory:
            cached.memory["shape"] = sample.readings.series.shared()
        started = Started(target.id, Result.OK, sample.at_ms, 1, "poll.snmp", Status())
        outcome = Outcome(
            Result.OK, readings=ReadingSet(cached.memory["shape"], sample.readings.values)
        )
        finished.append(FinishedPoll(cached, started, outcome, *([sample.at_ms] * 3)))
    return finished


def _round_us(judge: PollJudge, polls: Sequence[FinishedPoll], version: int) -> float:
    began = time.process_time()
    for first in range(0, len(polls), ROUND_POLLS):
        judge.judge_round(polls[first : first + ROUND_POLLS], frozenset(), version)
    return (time.process_time() - began) * 1e6 / len(polls)


def _measured(size: Size, *, has_rules: bool) -> Watched:
    """Measure the whole platform."""
    progress.step("with 50 rules" if has_rules else "without rules")
    with stage() as apart:
        services = apart.services
        if has_rules:
            stored = fifty_rules.store(services.engine)
            services.redis.set(services.keys.rules, stored.version)
        else:
            fifty_rules.forget(services.engine)
        request = PollRequest(size.interval_s)
        return watched.watch(apart, size.devices, request, workers=2, seconds=size.measure_s)


SECTION = Section(
    asks="what do fifty rules cost a poll?",
    sizes={
        "full": Size(10_000, 9, 10_000, 60.0, 180.0),
        "small": Size(1_000, 5, 1_000, 10.0, 30.0),
        "tiny": Size(32, 2, 24, 1.0, 3.0),
    },
    run=run,
)
