"""The alerts that fire as a number of the overview, which links to their list."""

from __future__ import annotations

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.alerts.rule import Severity
from poller.presentation import formatting
from poller.presentation.health import Tone


def texts(numbers: AlertNumbers | None) -> dict[str, str]:
    """Return the number and, in words, the others; not known while SQL cannot be read."""
    if numbers is None:
        return {"alerts": formatting.NOT_MEASURED, "alerts-others": ""}
    others = (
        (numbers.by_severity.get(Severity.CRITICAL, 0), "critical"),
        (numbers.pending, "pending"),
        (numbers.suppressed, "covered"),
    )
    words = [f"{formatting.exact(number)} {word}" for number, word in others if number]
    return {"alerts": formatting.exact(numbers.firing), "alerts-others": ", ".join(words)}


def tones(numbers: AlertNumbers | None) -> dict[str, str]:
    """Return the tone of the number: that of the worst severity; none for mere information."""
    firing = numbers.by_severity if numbers else {}
    if firing.get(Severity.CRITICAL):
        return {"alerts": str(Tone.FAILING)}
    return {"alerts": str(Tone.LATE)} if firing.get(Severity.WARNING) else {}
