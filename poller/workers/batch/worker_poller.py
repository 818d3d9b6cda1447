"""One batch from the queue to the sinks: start, load, collect, write, finish. Read it top to bottom.

The device's trouble is an outcome in the rows; only our own (Redis, SQL, a bug) is an exception.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TypeVar

import redis

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.collectors.api import Closeable
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.record import run
from poller.domain.record.run import Run
from poller.observability import logs
from poller.settings import policies
from poller.sinks.api import Sample
from poller.state.board.board_values import Move, Start, Started
from poller.workers.batch import letters, round_counters, round_events
from poller.workers.batch.cold_start import Warming
from poller.workers.batch.collection import Batch, Collected, Opened
from poller.workers.batch.event_loop import Runtime
from poller.workers.batch.retries import Retries
from poller.workers.batch.slot_lending import Slots
from poller.workers.batch.target_cache import Known, Secrets, Targets
from poller.workers.batch.verdict import Judge
from poller.workers.guard import stalls
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.collector_threads import Limits, Threads
from poller.workers.guard.isolation import Isolation
from poller.workers.guard.loop_watchdog import Watchdog
from poller.workers.results.writers import Writing

log = logs.get(__name__)

#: When SQL is down, targets we know nothing of come back after this long instead of in a tight circle.
STORE_PAUSE_MS = 5_000
#: A batch that was loaded more slowly than this looks again whether it is still its own.
SLOW_LOAD_S = 1.0
ASK_AGAIN_S = 0.25
#: How long a stopping worker takes leave of the devices it kept sessions with.
GOOD_BYE_S = 1.5

T = TypeVar("T")


class Poller:
    """What a worker process needs to poll batches. One per process; `poll` is called from many threads."""

    def __init__(self, services: Services, runner: str) -> None:
        settings = services.settings
        self.runner = runner
        self.polls = 0
        self._services = services
        self._board = services.board
        self._registry = services.registry
        self.writing = Writing(services.engine, services.sinks, settings, runner)
        self._targets = Targets(services.engine, services.registry, settings.target_cache)
        self._secrets = Secrets(services, settings.secret_cache_s)
        self._margin_ms = round(settings.lease_margin_s * 1000)
        self._queue_wait_ms = round(settings.queue_wait_s * 1000)
        self._judge = Judge(settings, services.staleness)
        self._retries = Retries(settings)
        self._box = BlackBox(settings.home, runner, services.registry.distributions)
        self._runtime = Runtime(self._box)
        self.isolation = Isolation(services, self._runtime)
        limits = Limits(settings.blocking_threads, settings.stuck_threads)
        self._runtime.executor = Threads(
            limits, self._box.threads, self._box.collector, self.isolation.overrun
        )
        self._sessions = Sessions(policies.session_rules(settings))
        self.slots = Slots()
        self._running: set[Batch] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()  # no retries: they would come when we are gone
        self._draining = threading.Event()
        self._warming = Warming(self._draining)

    def poll(self, token: str, ids: Sequence[int], attempt: int = 0) -> list[int]:
        """Poll one batch. Targets that are not ours any more are skipped; the rest end in exactly one place.

        Returns those that failed and stay in flight: they shall be polled again soon, as the next attempt.
        """
        with ExitStack() as turn:  # given up after the first round
            turn.enter_context(self._warming.turn(self._targets.unknown(ids)))
            return self._poll(token, ids, attempt, turn)

    def _poll(self, token: str, ids: Sequence[int], attempt: int, turn: ExitStack) -> list[int]:
        call = secrets.token_hex(4)
        start = self._patiently(
            lambda: self._board.start(token, attempt, call, self._margin_ms, ids)
        )
        started = {answer.id: answer for answer in start.targets if answer.result is Result.OK}
        self._note_refused(start.targets)
        if not started:
            return []
        try:
            return self._poll_started(token, attempt, start, started, turn)
        except (
            BaseException
        ) as error:  # ours, not the device's: whatever was not finished is handed back
            pause_ms = (
                STORE_PAUSE_MS if isinstance(error, Exception) else 0
            )  # told to exit: somebody else polls now
            with suppress(errors.StoreError):
                self._hand_back(token, start, started.values(), pause_ms)
            raise

    def give_back(self, token: str, ids: Sequence[int], attempt: int = 0) -> int:
        """A batch that nobody started, and nobody will: its targets are due again, at once. Returns how many."""
        call = secrets.token_hex(4)
        start = self._board.start(token, attempt, call, self._margin_ms, ids)
        mine = [answer for answer in start.targets if answer.result is Result.OK]
        self._hand_back(token, start, mine)
        return len(mine)

    def conclude(self, token: str, attempt: int, target_id: int, outcome: Outcome) -> None:
        """End a run for a process that died with it, as if we had polled; not if the run is somebody else's by now."""
        call = "conclude"  # always the same: if SQL is away after this, it may be said again
        start = self._board.start(token, attempt + 1, call, self._margin_ms, [target_id])
        [answer] = start.targets
        if answer.result is Result.OK:
            known, _ = self._targets.get({target_id: answer.version}, time.monotonic())
            if target_id in known:
                self._write(
                    token, attempt, start, [answer], [Collected(target_id, outcome, 0)], known
                )
            else:
                self._hand_back(token, start, [answer], STORE_PAUSE_MS)

    def _poll_started(
        self, token: str, attempt: int, start: Start, started: dict[int, Started], turn: ExitStack
    ) -> list[int]:
        versions = {answer.id: answer.version for answer in started.values()}
        known, changed = self._targets.get(versions, time.monotonic())
        wanted = {
            k.target.credential_id for k in known.values() if k.target.credential_id is not None
        }
        opened = self._secrets.get(wanted, changed)
        known = self._still_ours(token, start, started, _readable(known, opened))
        # What SQL does not have any more is about to leave the board: reconcile removes it. Or SQL is away.
        self._hand_back(
            token, start, [started.pop(i) for i in set(started) - set(known)], STORE_PAUSE_MS
        )
        again: list[int] = []
        lent = False
        with self._box.noted(token, attempt, len(known), start.queue) as flight:
            ways = self.isolation.ways(known.values())
            batch = Batch(self._runtime, self._registry, flight, self._sessions, ways)
            batch.start(list(known.values()), opened)
            with self._tracked(batch), ExitStack() as waiting:
                while (round_ := batch.next_round()) is not None:
                    mine = self._still_mine(token, start, started, round_, known) if round_ else []
                    again += self._write(
                        token, attempt, start, [started[item.id] for item in mine], mine, known
                    )
                    for item in mine:
                        del started[item.id]
                    turn.close()
                    if started and not lent:  # devices that take their time
                        lent = True
                        waiting.enter_context(self.slots.lent())
        if started:  # cancelled, because the worker is stopping
            self._hand_back(token, start, started.values())
        return self._keep(token, attempt, start, again)

    def _still_ours(
        self, token: str, start: Start, started: dict[int, Started], known: dict[int, Known]
    ) -> dict[int, Known]:
        """SQL took its time, or knows of a longer time limit than the board: the lease must cover what comes now."""
        slow = time.monotonic() - start.read_mono > SLOW_LOAD_S
        edited = any(found.version != started[i].version for i, found in known.items())
        if not known or not (slow or edited):
            return known
        lease_ms = max(found.target.timeout_ms for found in known.values()) + self._margin_ms
        held = self._patiently(lambda: self._board.hold(token, lease_ms, list(known)))
        for target_id in [i for i, verdict in held.items() if verdict is not Result.OK]:
            started.pop(target_id, None)
            known.pop(target_id)
        return known

    def _keep(self, token: str, attempt: int, start: Start, again: list[int]) -> list[int]:
        """What is tried again stays in flight until then, and the way there; unless we might be gone by then."""
        if self._stopping.is_set():
            self._hand_back(
                token, start, [answer for answer in start.targets if answer.id in again]
            )
            return []
        if not again:
            return []
        lease_ms = (
            self._retries.limits.longest_wait_ms(attempt) + self._queue_wait_ms + self._margin_ms
        )
        held = self._patiently(lambda: self._board.hold(token, lease_ms, again))
        return [target_id for target_id, verdict in held.items() if verdict is Result.OK]

    def _still_mine(
        self,
        token: str,
        start: Start,
        started: dict[int, Started],
        collected: Sequence[Collected],
        known: dict[int, Known],
    ) -> list[Collected]:
        """Results of runs whose lease was not taken over meanwhile; the others belong to somebody else by now.

        Before their shortest time limit has passed, every lease has more than the margin left.
        """
        ids = [item.id for item in collected]
        brief_ms = min(known[target_id].target.timeout_ms for target_id in ids)
        lease_ms = 0 if start.believed_ms < start.now_ms + brief_ms else self._margin_ms
        held = self._patiently(lambda: self._board.hold(token, lease_ms, ids))
        refused = {i: verdict.value for i, verdict in held.items() if verdict is not Result.OK}
        if refused:
            log.warning("late_results_refused", claim=token, targets=refused)
            self._count_refused(refused.values())
            for target_id in refused:
                del started[target_id]
        return [item for item in collected if item.id not in refused]

    def _write(
        self,
        token: str,
        attempt: int,
        start: Start,
        answered: Sequence[Started],
        collected: Sequence[Collected],
        known: dict[int, Known],
    ) -> list[int]:
        """One round: readings to every sink, rows to the ledger, dead letters to theirs, then the move on the board.

        Returns the targets that do not move, because they are tried again.
        """
        if not collected:
            return []
        now_ms = start.now_ms
        done = list(zip(answered, collected, strict=True))
        samples = [
            Sample(known[item.id].target, now_ms + item.elapsed_ms, item.outcome.readings)
            for item in collected
            if item.outcome.readings
        ]
        write_ms = self.writing.write_readings(samples)
        rows = [self._run(token, attempt, answer, item, now_ms, write_ms) for answer, item in done]
        again = self._retries.choose(attempt, start, done, known)
        verdicts = [
            self._judge.judge(start, *pair, known[pair[1].id])
            for pair in done
            if pair[1].id not in again
        ]
        self.writing.write_rows(rows, letters.changes(verdicts))
        stats = round_counters.of_round(
            start.queue, rows, verdicts, len(again)
        ) | round_counters.by_site(verdicts, known)
        texts = round_counters.error_texts(
            [row for row in rows if row.target_id not in again], known
        )
        moves = [verdict.move for verdict in verdicts]
        self._patiently(
            lambda: self._board.finish(
                token,
                moves,
                stats=stats,
                errors=texts,
                believed_ms=start.believed_ms,
                queue=start.queue,
            )
        )
        self.polls += len(moves)
        if happened := [*round_events.of(verdicts, known), *letters.news(verdicts, known)]:
            event_publisher.emit(self._services, happened)
        return list(again)

    def _run(
        self, token: str, attempt: int, answer: Started, item: Collected, now_ms: int, write_ms: int
    ) -> Run:
        result = item.outcome
        return Run(
            target_id=item.id,
            plan_ms=answer.plan_ms,
            outcome=result.result,
            attempt=attempt + 1,
            error_code=result.error_code,
            message=result.message,
            started_ms=now_ms,
            finished_ms=now_ms + item.elapsed_ms,
            samples=result.samples,
            runner=self.runner,
            token=token,
            queue_ms=run.queue_ms(token, now_ms),
            collect_ms=item.elapsed_ms,
            write_ms=write_ms if result.readings else 0,
        )

    def _hand_back(
        self, token: str, start: Start, answers: Collection[Started], pause_ms: int = 0
    ) -> None:
        """Not attempted, or not to the end: due again, as if nothing had happened."""
        if answers:
            now_ms = start.believed_ms
            moves = [Move(answer.id, now_ms + pause_ms) for answer in answers]
            self._patiently(lambda: self._board.finish(token, moves, believed_ms=now_ms))

    def _note_refused(self, answers: Sequence[Started]) -> None:
        refused = [answer.result.value for answer in answers if answer.result is not Result.OK]
        if refused:
            log.info("runs_refused", **Counter(refused))
            self._count_refused(refused)

    def _count_refused(self, verdicts: Iterable[str]) -> None:
        with suppress(errors.StoreError):  # only a statistic
            self._board.count(dict(Counter(verdicts)))

    def _patiently(self, ask: Callable[[], T]) -> T:
        """A Redis that is away must not cost the leases of what we hold: ask until it is back, or we have to stop."""
        while True:
            try:
                return ask()
            except errors.StoreUnavailable as error:
                away = isinstance(error.__cause__, redis.ConnectionError | redis.TimeoutError)
                if not away or self._draining.wait(ASK_AGAIN_S):
                    raise

    def watch(self) -> None:
        """From the first poll on: a collector that blocks everybody ends this process."""
        self._runtime.watchdog = Watchdog(
            self._box, partial(stalls.tell, self._services, self.runner)
        )
        self._box.keep_faults()

    def close(self) -> None:
        """Nothing polls any more: devices are told good-bye, and nobody has to ask why we ended."""
        with suppress(TimeoutError):  # a loop that is stuck will end with us
            self._runtime.run(self._say_good_bye(), GOOD_BYE_S)
        self.isolation.close()
        self._box.close()

    async def _say_good_bye(self) -> None:
        await self._sessions.close()
        for name, collector in self._registry.collectors.items():
            if isinstance(collector, Closeable):
                try:
                    await collector.close()
                except Exception as error:  # noqa: BLE001  a plugin may raise anything, and we leave anyway
                    log.warning("collector_not_closed", collector=name, error=type(error).__name__)

    @property
    def in_flight(self) -> int:
        with self._lock:
            return len(self._running)

    def stop_retrying(self) -> None:
        """From now on what failed is handed back at once."""
        self._stopping.set()

    def drain(self) -> None:
        """Cut off what still runs; its targets are handed back by the threads that wait for them."""
        self._stopping.set()
        self._draining.set()
        with self._lock:
            for batch in self._running:
                batch.cancel()

    def _tracked(self, batch: Batch) -> _Tracked:
        return _Tracked(self, batch)


class _Tracked:
    """Keeps a batch in the poller's set of running ones; a batch that comes too late is cut off at once."""

    def __init__(self, poller: Poller, batch: Batch) -> None:
        self._poller, self._batch = poller, batch

    def __enter__(self) -> None:
        with self._poller._lock:
            self._poller._running.add(self._batch)
        if self._poller._draining.is_set():
            self._batch.cancel()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:  # its targets are handed back: nobody may still be polling them then
            self._batch.cancel()
        with self._poller._lock:
            self._poller._running.discard(self._batch)


def _readable(known: dict[int, Known], opened: Mapping[int, Opened]) -> dict[int, Known]:
    """Without those whose credential could not be read. Raises StoreError if these are all."""
    unread = {i: item for i, item in opened.items() if isinstance(item, errors.StoreError)}
    ready = {i: found for i, found in known.items() if found.target.credential_id not in unread}
    if unread:
        error = next(iter(unread.values()))
        if not ready:
            raise error
        log.warning("credentials_not_read", targets=len(known) - len(ready), error=str(error))
    return ready
