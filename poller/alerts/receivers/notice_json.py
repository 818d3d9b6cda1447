"""A notice as JSON for programs: the body of webhooks. Instants are texts in UTC."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.notice import Notice, ToldAlert

SCHEMA = "poller.notice/1"


def encode(notice: Notice, key: str) -> bytes:
    """Return the body of a webhook: the same bytes for the same notice."""
    return json.dumps(document(notice, key), ensure_ascii=False, separators=(",", ":")).encode()


def document(notice: Notice, key: str) -> dict[str, Any]:
    """Return the notice as a document."""
    return {
        "schema": SCHEMA,
        "key": key,
        "kind": notice.kind.value,
        "route": notice.route,
        "at": instant(notice.created_ms),
        "subject": notice_text.subject(notice),
        "group": dict(notice.group),
        "alerts": [_alert(alert) for alert in notice.alerts],
        "more": notice.more,
    }


def instant(at_ms: int) -> str | None:
    """Return an instant as text; None for 0."""
    if not at_ms:
        return None
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _alert(alert: ToldAlert) -> dict[str, Any]:
    return {
        "id": alert.id,
        "identity": alert.identity,
        "rule": alert.rule,
        "severity": alert.severity,
        "state": alert.state,
        "device": alert.device,
        "target": alert.target,
        "site": alert.site,
        "series": alert.series,
        "text": alert.text,
        "value": alert.value,
        "labels": dict(alert.labels),
        "since": instant(alert.since_ms),
        "fired": instant(alert.fired_ms),
        "resolved": instant(alert.resolved_ms),
        "flaps": alert.flaps,
        "folded": alert.folded,
        "url": alert.url,
    }
