"""One Celery message, from `start` on the board to `finish`. Read `BatchRun.run` top to bottom.

A device's failure is an outcome in the rows. Only our own failure (Redis, SQL, a bug) is an
exception.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from poller import errors, event_publisher
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record import run
from poller.domain.record.event_kinds import Event
from poller.domain.record.run import Run
from poller.domain.scheduling import slots
from poller.metering import process_metrics
from poller.observability import logs, tracing
from poller.observability.tracing import BatchTrace
from poller.sinks.api import Sample
from poller.state.board.board_values import MarkChange, Move, Start, Started
from poller.workers.batch import credential_cache, retrying_board, round_effects
from poller.workers.batch.collection import Collected, Collection
from poller.workers.batch.credential_cache import CredentialOrError
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.poller_parts import PollerParts
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.batch.verdict import Verdict
from poller.workers.ends.series_ender import NO_ENDS, RoundEnds

log = logs.get(__name__)

#: A target that cannot be loaded while SQL is away is due again after this long, not at once.
STORE_PAUSE_MS = 5_000
#: A batch that took longer than this to load checks whether its leases are still its own.
SLOW_LOAD_S = 1.0


class BatchRun:
    """The targets of one message. A target is in `_unfinished` until it is finished, handed back
    or lost to another claim.
    """

    def __init__(
        self,
        parts: PollerParts,
        token: str,
        ids: Sequence[int],
        attempt: int = 0,
        trace: BatchTrace | None = None,
    ) -> None:
        self._parts = parts
        self._token = token
        self._ids = ids
        self._attempt = attempt
        self._trace = trace
        self._start: Start
        self._unfinished: dict[int, Started] = {}
        self._targets: dict[int, CachedTarget] = {}
        self._retried: list[int] = []
        #: Admission under the cold-start limit, until the first round is written.
        self._admission = ExitStack()
        #: Capacity lent to other batches, until the collection ends.
        self._lent = ExitStack()
        self._is_lending = False
        self._has_lent_slot = False
        self._round_mono = 0.0  # when the last round was written; 0 before the first

    def run(self) -> list[int]:
        """Poll the batch. Targets that are no longer ours are skipped; the rest end in one place
        each.

        Returns the failed targets that stay in flight for the next attempt.
        """
        with self._admission:
            self._admit()
            self._start_targets()
            if not self._unfinished:
                return []
            try:
                return self._poll()
            except BaseException as error:  # our own failure, or the process has to exit
                self._abandon(error)
                raise

    def _poll(self) -> list[int]:
        credentials = self._load()
        with self._collection(credentials) as collection:
            for collected in collection.rounds():
                self._write(self._still_owned(collected))
                self._admission.close()
                self._lend_capacity()
        return self._end()

    def hand_back_all(self) -> int:
        """Hand back a batch that no worker has started; its targets are due at once. Returns how
        many.
        """
        board = self._parts.services.board
        call = self._call_name()
        start = board.start(self._token, self._attempt, call, self._parts.margin_ms, self._ids)
        self._take_over(start)
        count = len(self._unfinished)
        self._hand_back(list(self._unfinished))
        return count

    def conclude(self, outcome: Outcome) -> None:
        """End the run of one target for a process that died with it, unless another worker has it
        by now.
        """
        board = self._parts.services.board
        attempt = self._attempt + 1
        call = "conclude"  # constant: after a failure of SQL the same call is repeated
        start = board.start(self._token, attempt, call, self._parts.margin_ms, self._ids)
        self._take_over(start)
        if not self._unfinished:
            return
        [target_id] = self._ids
        versions = {target_id: self._unfinished[target_id].version}
        self._targets = self._parts.targets.load(versions, time.monotonic()).by_id
        if target_id in self._targets:
            self._write([Collected(target_id, outcome, start.read_mono, start.read_mono)])
        else:
            self._hand_back([target_id], STORE_PAUSE_MS)

    def _admit(self) -> None:
        cold_targets = self._parts.targets.count_uncached(self._ids)
        self._admission.enter_context(self._parts.cold_start.admit(cold_targets))

    def _start_targets(self) -> None:
        """Ask the board which targets are still under this token and not started."""
        call = self._call_name()
        start = self._parts.board.start(
            self._token, self._attempt, call, self._parts.margin_ms, self._ids
        )
        self._take_over(start)
        refused = [
            started.result.value for started in start.targets if started.result is not Result.OK
        ]
        if refused:
            log.info("runs_refused", **Counter(refused))
            self._count_refused(refused)

    def _call_name(self) -> str:
        """A name for one `start` call; it tells operators which worker has the run."""
        return run.call_name(self._parts.runner, secrets.token_hex(4))

    def _take_over(self, start: Start) -> None:
        self._start = start
        for started in start.targets:
            if started.result is Result.OK:
                self._unfinished[started.id] = started

    def _load(self) -> Mapping[int, CredentialOrError]:
        """Load targets and credentials. Targets that cannot be loaded are handed back."""
        versions = {target_id: started.version for target_id, started in self._unfinished.items()}
        loaded = self._parts.targets.load(versions, time.monotonic())
        credential_ids = {
            cached.target.credential_id
            for cached in loaded.by_id.values()
            if cached.target.credential_id is not None
        }
        credentials = self._parts.credentials.get(credential_ids, loaded.changed_credentials)
        self._targets = credential_cache.without_unread(loaded.by_id, credentials)
        self._confirm_leases()
        # SQL is away, or the target was removed: reconcile takes it off the board.
        not_loaded = [target_id for target_id in self._unfinished if target_id not in self._targets]
        self._hand_back(not_loaded, STORE_PAUSE_MS)
        return credentials

    def _confirm_leases(self) -> None:
        """Extend the leases if loading was slow or a time limit was edited; drop targets that were
        lost.
        """
        is_slow = time.monotonic() - self._start.read_mono > SLOW_LOAD_S
        is_edited = any(
            cached.version != self._unfinished[target_id].version
            for target_id, cached in self._targets.items()
        )
        if not self._targets or not (is_slow or is_edited):
            return
        longest_ms = max(cached.target.timeout_ms for cached in self._targets.values())
        lease_ms = longest_ms + self._parts.margin_ms
        held = self._parts.board.hold(self._token, lease_ms, list(self._targets))
        for target_id, result in held.items():
            if result is not Result.OK:
                del self._unfinished[target_id]
                del self._targets[target_id]

    @contextmanager
    def _collection(self, credentials: Mapping[int, CredentialOrError]) -> Iterator[Collection]:
        """Start the polls; they are visible in the black box and can be cut off while the context
        lasts.
        """
        parts = self._parts
        targets = list(self._targets.values())
        queue = self._start.queue
        recorded = parts.black_box.record_batch(self._token, self._attempt, len(targets), queue)
        with recorded as batch_number:
            overrides = parts.isolation.overrides(each.target.collector for each in targets)
            collection = Collection(
                parts.poll_loop, parts.services.registry, batch_number, parts.sessions, overrides
            )
            collection.start(targets, credentials, self._behind())
            with parts.running.tracked(collection), self._lent:
                yield collection

    def _behind(self) -> set[int]:
        """The targets whose polls start so late that the workers must have too much to do."""
        behind = set()
        for target_id, cached in self._targets.items():
            started = self._unfinished[target_id]
            late = slots.is_behind(started.plan_ms, self._start.now_ms, cached.target.interval_ms)
            if late and not started.postponed:
                behind.add(target_id)
        return behind

    def _lend_capacity(self) -> None:
        """After the first round, lend this batch's capacity while its slow devices are
        waited for.
        """
        if self._unfinished and not self._is_lending:
            self._is_lending = True
            self._has_lent_slot = self._lent.enter_context(self._parts.lending.lend())

    def _slot_ms(self) -> int:
        """The time since the round before, or the start, if the batch held its slot meanwhile."""
        since_mono = self._round_mono or self._start.read_mono
        self._round_mono = time.monotonic()
        return 0 if self._has_lent_slot else round((self._round_mono - since_mono) * 1000)

    def _still_owned(self, collected: Sequence[Collected]) -> Sequence[Collected]:
        """Keep the results whose lease was not taken over meanwhile.

        Until the shortest time limit of these targets has passed, each lease has more than the
        margin left and needs no extension.
        """
        if not collected:
            return collected
        ids = [item.id for item in collected]
        shortest_ms = min(self._targets[target_id].target.timeout_ms for target_id in ids)
        is_early = self._start.believed_ms < self._start.now_ms + shortest_ms
        lease_ms = 0 if is_early else self._parts.margin_ms
        held = self._parts.board.hold(self._token, lease_ms, ids)
        refused = {
            target_id: result.value for target_id, result in held.items() if result is not Result.OK
        }
        if not refused:
            return collected
        log.warning("late_results_refused", claim=self._token, targets=refused)
        self._count_refused(refused.values())
        for target_id in refused:
            del self._unfinished[target_id]
        return [item for item in collected if item.id not in refused]

    def _write(self, collected: Sequence[Collected]) -> None:
        """Write one round: readings to the sinks, runs and dead letters to SQL, then the moves to
        the board.
        """
        if not collected:
            return
        polls = [self._finished_poll(item) for item in collected]
        retried = self._parts.retries.choose(polls, self._attempt)
        rules_version = self._start.rules_version
        marks = self._parts.rule_judge.judge_round(polls, retried, rules_version)
        with tracing.step(self._trace, "write readings"):
            ends = self._end_series(polls, retried)
            write_ms = self._write_readings(polls, ends)
        runs = [self._ledger_row(poll, write_ms) for poll in polls]

        verdicts = [
            self._parts.judge.judge(poll, self._start, ends.shapes.get(poll.target.id, 0))
            for poll in polls
            if poll.target.id not in retried
        ]
        with tracing.step(self._trace, "write runs"):
            self._parts.writers.write_rows(runs, round_effects.dead_letters(verdicts))
        with tracing.step(self._trace, "finish"):
            published = self._finish(runs, verdicts, retried, marks)
        if self._trace is not None:
            self._trace_polls(self._trace, collected, polls)
        self._retried += retried

        for item in collected:
            del self._unfinished[item.id]
        event_publisher.write_lines(published)
        events = round_effects.events(verdicts)
        if events:
            event_publisher.emit(self._parts.services, events)

    def _trace_polls(
        self, trace: BatchTrace, collected: Sequence[Collected], polls: Sequence[FinishedPoll]
    ) -> None:
        for item, poll in zip(collected, polls, strict=True):
            times = (item.started_mono, item.finished_mono)
            trace.add("poll target", *times, poll.trace_attributes, item.outcome.error_code)

    def _finished_poll(self, item: Collected) -> FinishedPoll:
        start = self._start
        return FinishedPoll(
            cached=self._targets[item.id],
            started=self._unfinished[item.id],
            outcome=item.outcome,
            started_ms=start.at_ms(item.started_mono),
            answered_ms=start.at_ms(item.answered_mono),
            finished_ms=start.at_ms(item.finished_mono),
        )

    def _end_series(self, polls: Sequence[FinishedPoll], retried: set[int]) -> RoundEnds:
        ender = self._parts.ender
        return ender.end_round(polls, retried) if ender is not None else NO_ENDS

    def _write_readings(self, polls: Sequence[FinishedPoll], ends: RoundEnds) -> int:
        samples = [
            Sample(poll.target, poll.answered_ms, poll.outcome.readings)
            for poll in polls
            if poll.outcome.readings
        ]
        return self._parts.writers.write_readings(samples, ends.samples)

    def _ledger_row(self, poll: FinishedPoll, write_ms: int) -> Run:
        outcome = poll.outcome
        return Run(
            target_id=poll.target.id,
            plan_ms=poll.started.plan_ms,
            outcome=outcome.result,
            attempt=self._attempt + 1,
            error_code=outcome.error_code,
            message=outcome.message,
            started_ms=poll.started_ms,
            finished_ms=poll.finished_ms,
            samples=outcome.samples,
            runner=self._parts.runner,
            token=self._token,
            queue_ms=run.queue_ms(self._token, self._start.now_ms),
            collect_ms=poll.elapsed_ms,
            write_ms=write_ms if outcome.readings else 0,
        )

    def _finish(
        self,
        runs: Sequence[Run],
        verdicts: Sequence[Verdict],
        retried: set[int],
        marks: Sequence[MarkChange],
    ) -> list[Event]:
        """Move the targets of a round to their next place; targets to be retried stay in flight.

        Returns the events that the board published.
        """
        queue = self._start.queue
        targets: dict[int, PollTarget] = {verdict.target.id: verdict.target for verdict in verdicts}
        final_runs = [row for row in runs if row.target_id in targets]
        moves = [verdict.move for verdict in verdicts]
        services = self._parts.services
        published = self._parts.board.finish(
            self._token,
            moves,
            believed_ms=self._start.believed_ms,
            stats=round_effects.counters(queue, runs, verdicts, len(retried), self._slot_ms()),
            error_texts=round_effects.error_texts(final_runs, targets),
            queue=queue,
            reports=event_publisher.safe_reports(services, round_effects.reports(verdicts)),
            events_length=services.settings.events_length,
            marks=marks,
        )
        self._parts.running.count_polls(len(moves))
        return published

    def _end(self) -> list[int]:
        """Hand back the targets that were cut off, and keep those to be retried in flight."""
        self._hand_back(list(self._unfinished))
        return self._hold_retried()

    def _hold_retried(self) -> list[int]:
        """Extend the leases of targets to be retried until the retry can start. While stopping,
        hand them back.
        """
        if not self._retried:
            return []
        if self._parts.running.stopping.is_set():
            self._hand_back(self._retried)
            return []
        wait_ms = self._parts.retries.limits.longest_wait_ms(self._attempt)
        lease_ms = wait_ms + self._parts.queue_wait_ms + self._parts.margin_ms
        held = self._parts.board.hold(self._token, lease_ms, self._retried)
        return [target_id for target_id, result in held.items() if result is Result.OK]

    def _abandon(self, error: BaseException) -> None:
        """Hand back what is unfinished: after an error with a pause, on exit at once for another
        worker. Without Redis the leases bring the targets back.
        """
        if retrying_board.is_away(error):
            return
        pause_ms = STORE_PAUSE_MS if isinstance(error, Exception) else 0
        with suppress(errors.StoreError):
            self._hand_back(list(self._unfinished), pause_ms)

    def _hand_back(self, ids: Sequence[int], pause_ms: int = 0) -> None:
        """Return targets to `due` as if they had not been claimed."""
        if not ids:
            return
        now_ms = self._start.believed_ms
        moves = [Move(target_id, now_ms + pause_ms) for target_id in ids]
        self._parts.board.finish(self._token, moves, believed_ms=now_ms)
        process_metrics.leases.add("handed_back", by=len(moves))
        for target_id in ids:
            self._unfinished.pop(target_id, None)  # a target to be retried is not among them

    def _count_refused(self, results: Iterable[str]) -> None:
        with suppress(errors.StoreError):  # only a statistic
            self._parts.services.board.count(round_effects.refusals(self._start.queue, results))
