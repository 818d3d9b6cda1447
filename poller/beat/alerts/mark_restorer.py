"""Tells the workers the version of the rules, and gives the board the marks that it lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from poller.beat.leadership import Leader
from poller.domain.alerts import mark
from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.mark import Mark
from poller.observability import logs
from poller.state.board.alert_levels import AlertLevels
from poller.state.board.board_reader import BoardReader

log = logs.get(__name__)


class MarkRestorer:
    """Keeps the board's version of the rules in step. Every method raises StoreError, NotLeader."""

    def __init__(self, board: BoardReader, leader: Leader) -> None:
        self._board = board
        self._levels = AlertLevels(board)
        self._leader = leader

    def follow(self, rules: KnownRules, alerts: Iterable[Alert]) -> bool:
        """Write the version of the rules, if the board has another one. Returns whether the board
        had none: it is new or was emptied, and has the marks of the open alerts again.

        The marks come first: no worker judges a poll before it knows of rules.
        """
        stored = self._levels.rules_version()
        if stored == rules.version or self._board.version() is None:
            return False
        if not stored:
            restored = self._levels.put_marks(self._leader.token, _texts(rules, alerts))
            if restored:
                log.info("marks_restored", targets=restored)
        self._levels.set_rules_version(self._leader.token, rules.version)
        return not stored


def _texts(rules: KnownRules, alerts: Iterable[Alert]) -> dict[int, str]:
    """The stored marks of each target, from the alerts that workers' marks made."""
    by_target: dict[int, list[Mark]] = defaultdict(list)
    for alert in alerts:
        rule = rules.by_name.get(alert.rule)
        target_id = alert.subject.target_id
        if rule is None or not rule.is_judged_by_workers or target_id is None or alert.gone_ms:
            continue
        by_target[target_id].append(
            Mark(
                rule_id=rule.id,
                series=alert.subject.series,
                since_ms=alert.since_ms,
                at_ms=alert.seen_ms,
                value=alert.value,
                labels=alert.labels,
            )
        )
    return {target_id: mark.pack(marks) for target_id, marks in by_target.items()}
