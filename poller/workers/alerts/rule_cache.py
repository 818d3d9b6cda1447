"""The metric rules as this worker knows them, brought up to the version that the board tells.

Rules are read beside the polls: until they are here, polls are judged by the old ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from sqlalchemy.engine import Engine

from poller.db.alerts import rule_rows
from poller.db.alerts.rule_rows import StoredRules
from poller.db.bounded_reads import BoundedReads
from poller.domain.alerts.judging.rule_set import RuleChoice
from poller.observability import logs

log = logs.get(__name__)

#: Rules are not read more often than this, whatever the board tells.
READ_AGAIN_S = 5.0


class KnownRules:
    """The rules of one version; one object, so that what was made of it is known to be old."""

    def __init__(self, version: int, choice: RuleChoice) -> None:
        self.version = version
        self.choice = choice


class RuleCache:
    """One per worker process, safe for threads."""

    def __init__(self, engine: Engine, reads: BoundedReads) -> None:
        self._load: Callable[[], StoredRules] = partial(rule_rows.load, engine)
        self._reads = reads
        self._lock = threading.Lock()
        self._known = KnownRules(0, RuleChoice(()))
        self._told = 0  # version for which the rules were read last
        self._read_mono = -READ_AGAIN_S
        self._is_reading = False

    @property
    def version(self) -> int:
        """The version of the rules at hand; 0: none yet."""
        return self._known.version

    def known(self, told: int, now_mono: float) -> KnownRules:
        """Return the rules at hand, and begin to read newer ones if the board tells of them.

        Nothing is read while the board tells no version.
        """
        if told != self._told and told != self._known.version and told:
            self._begin_to_read(told, now_mono)
        return self._known

    def _begin_to_read(self, told: int, now_mono: float) -> None:
        with self._lock:
            if self._is_reading or now_mono - self._read_mono < READ_AGAIN_S:
                return
            self._is_reading = True
            self._read_mono = now_mono
        self._reads.read_beside(self._load, partial(self._take_over, told))

    def _take_over(self, told: int, future: Future[StoredRules]) -> None:
        """Use rules that were read, in the thread of the read."""
        try:
            stored = future.result()
            choice = RuleChoice(stored.rules)
        except Exception as error:  # noqa: BLE001  door: the end of this thread; it is tried again
            log.warning("rules_not_read", version=told, error=str(error))
        else:
            if choice.unusable:
                log.warning("rules_not_usable", rules=choice.unusable)
            self._known = KnownRules(stored.version, choice)
            self._told = told
            log.info("rules_read", version=stored.version, rules=len(choice))
        finally:
            self._is_reading = False
