"""A notice as plain text: a subject, and a body for e-mail and chat."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

from poller.domain.alerts.telling.notice import Notice, NoticeKind, ToldAlert
from poller.domain.inventory import duration

#: Alerts that a text lists; it counts the others.
MOST_LISTED = 50


def subject(notice: Notice) -> str:
    """One line that says what is wrong, or what is over."""
    if notice.kind is NoticeKind.TEST:
        return f"[test] poller: a test of route {notice.route}"
    total = len(notice.alerts) + notice.more
    if total == 1:
        return _marked(notice, headline(notice.alerts[0]))
    if notice.kind is NoticeKind.SUMMARY:
        return f"[summary] {_counts(notice)}"
    places = [value for name, value in notice.group.items() if value and name != "severity"]
    return _marked(notice, f"{total} alerts: {', '.join(places)}".removesuffix(": "))


def headline(alert: ToldAlert) -> str:
    """The subject of an alert and its text. A text that begins with the subject stands alone."""
    text = alert.text or alert.rule
    begins_with_it = re.match(rf"{re.escape(alert.subject)}(?![\w.-])", text)
    return text if begins_with_it else f"{alert.subject}: {text}"


def body(notice: Notice) -> str:
    """The alerts, the most severe first as the notice has them, a paragraph each."""
    if notice.kind is NoticeKind.TEST:
        return f"This is a test of route {notice.route}. Nothing is wrong."
    parts = []
    if notice.kind is NoticeKind.ESCALATION:
        parts.append("Nobody has acknowledged this yet.")
    if notice.kind is NoticeKind.SUMMARY:
        parts.append(f"Too many notices within a minute, so this is a summary: {_counts(notice)}.")
    parts += [_paragraph(alert) for alert in notice.alerts[:MOST_LISTED]]
    left_out = len(notice.alerts[MOST_LISTED:]) + notice.more
    if left_out:
        parts.append(f"... and {left_out} more.")
    return "\n\n".join(parts)


def _marked(notice: Notice, text: str) -> str:
    if notice.kind is NoticeKind.RESOLVED:
        return f"[resolved] {text}"
    mark = notice.alerts[0].severity
    if notice.kind is NoticeKind.ESCALATION:
        mark += ", not acknowledged"
    return f"[{mark}] {text}"


def _counts(notice: Notice) -> str:
    states = Counter("resolved" if alert.is_resolved else "firing" for alert in notice.alerts)
    words = [f"{count} {state}" for state, count in sorted(states.items())]
    if notice.more:
        words.append(f"{notice.more} more")
    return ", ".join(words)


def _paragraph(alert: ToldAlert) -> str:
    state = "resolved" if alert.is_resolved else alert.severity
    lines = [headline(alert), f"  {state}, rule {alert.rule}"]
    if alert.site and alert.device:
        lines[1] += f", site {alert.site}"
    lines.append(f"  since {_instant(alert.since_ms)}")
    if alert.is_resolved:
        length = duration.rounded_text(max(0, alert.resolved_ms - alert.since_ms))
        lines[2] += f", over at {_instant(alert.resolved_ms)} after {length}"
    if alert.folded:
        lines.append(f"  stands for {alert.folded} more")
    if alert.flaps > 1:
        lines.append(f"  flapping: it came {alert.flaps} times within an hour")
    if alert.url:
        lines.append(f"  {alert.url}")
    return "\n".join(lines)


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
