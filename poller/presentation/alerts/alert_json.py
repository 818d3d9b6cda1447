"""Alerts as JSON, for the command line, the API and the pages."""

from __future__ import annotations

from typing import Any

from poller.domain.alerts.alert_numbers import AlertNumbers


def numbers(found: AlertNumbers | None) -> dict[str, Any] | None:
    """Return the open alerts in numbers; None while they cannot be read."""
    if found is None:
        return None
    return {
        "firing": found.firing,
        "pending": found.pending,
        "suppressed": found.suppressed,
        "by_severity": dict(found.by_severity),
    }
