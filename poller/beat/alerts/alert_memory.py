"""The open alerts as a leader holds them in memory during its term, as SQL has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.engine import Engine

from poller.db.alerts import alert_rows
from poller.db.alerts.alert_rows import Term
from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow import flap_damping, keeping
from poller.domain.alerts.flow.keeping import Kept, Past
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.flow.sign import Signs, still_holding


@dataclass(slots=True)
class AlertMemory:
    """Everything that one pass leaves to the next. SQL has it too, but for `holding`, which a full
    look finds again.
    """

    term: Term
    open: dict[str, Alert]
    past: Past
    holding: set[str] = field(default_factory=set)
    next_ms: int = 0  # when time alone changes an alert

    def follow(self, kept: Kept, signs: Signs, rules: KnownRules, now_ms: int) -> None:
        """Take over what a pass wrote."""
        self.open = kept.open
        self.past = keeping.remembered(self.past, kept, rules.by_name, now_ms)
        self.holding = still_holding(self.holding, signs) & kept.open.keys()
        self.next_ms = kept.next_ms


def read(engine: Engine, holder: str, rules: KnownRules, now_ms: int) -> AlertMemory:
    """Begin a term, and read where the last one ended. Raises StoreError."""
    return _stored(engine, alert_rows.take_term(engine, holder, now_ms), rules, now_ms)


def read_again(engine: Engine, memory: AlertMemory, rules: KnownRules, now_ms: int) -> AlertMemory:
    """Return what SQL has, after a write without an answer: it may have been committed. Raises
    StoreError.
    """
    return replace(_stored(engine, memory.term, rules, now_ms), holding=memory.holding)


def _stored(engine: Engine, term: Term, rules: KnownRules, now_ms: int) -> AlertMemory:
    found: Sequence[Alert] = alert_rows.open_alerts(engine)
    over = alert_rows.over_since(engine, now_ms - flap_damping.WINDOW_MS)
    return AlertMemory(
        term=term,
        open={alert.subject.identity(alert.rule): alert for alert in found},
        past=keeping.past_of(over, rules.by_name, now_ms),
    )
