"""Check-ins of jobs to Sentry: a run of a plan began, and how it ended. Sentry makes a monitor of
each job from its schedule, and tells when a job is missed, fails or does not end.

A check-in has the name and the schedule of a job, and no scope, result or message of a run.
"""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from poller.domain.jobs.job_run import Plan
from poller.domain.jobs.job_schedule import Cron
from poller.domain.jobs.job_terms import JobTerms
from poller.observability.report_quota import Quota

#: Most check-ins of one process per minute that begin a run or report a failure. A job has at most
#: one of each per minute: Sentry counts in whole minutes.
PER_MINUTE = 200
#: Sentry waits this long after a plan and its delay, in minutes, before the plan counts as missed.
MARGIN_MIN = 2
LONGEST_SLUG = 50
_MINUTE_S = 60
_HASH_LENGTH = 8
_NAMESPACE = uuid.UUID("5f0c6f0e-6b1f-4a55-9a3c-2c1d1d0d7a15")  # random: it belongs to check-ins

#: Sends one event. Neither waits nor raises.
Send = Callable[[Mapping[str, Any]], None]


class CheckIns:
    """The check-ins of one process. Thread-safe; nothing here waits or raises."""

    def __init__(self, send: Send, quota: Quota | None = None) -> None:
        self._send = send
        self._quota = quota or Quota(PER_MINUTE)

    def began(self, terms: JobTerms, plan: Plan, attempt: int) -> str:
        """Say that an attempt runs. Returns the id for `ended`; "" if the limit is reached."""
        if self._quota.admit((terms.name, "began")) is None:
            return ""
        check_in_id = identity(plan, attempt)
        self._say(terms, check_in_id, "in_progress")
        return check_in_id

    def ended(self, terms: JobTerms, check_in_id: str, is_ok: bool, duration_s: float) -> None:
        """Say how an attempt ended. Without an id only a failure is told: no failure is lost behind
        the success of another scope.
        """
        if not check_in_id and (is_ok or self._quota.admit((terms.name, "failed")) is None):
            return
        self._say(terms, check_in_id, "ok" if is_ok else "error", max(0.0, duration_s))

    def _say(
        self, terms: JobTerms, check_in_id: str, status: str, duration_s: float | None = None
    ) -> None:
        event: dict[str, Any] = {
            "type": "check_in",
            "check_in_id": check_in_id or uuid.uuid4().hex,
            "monitor_slug": slug(terms.name),
            "status": status,
            "monitor_config": monitor(terms),
        }
        if duration_s is not None:
            event["duration"] = round(duration_s, 3)
        self._send(event)


def identity(plan: Plan, attempt: int) -> str:
    """The id of an attempt. An attempt that a stopping worker gave back goes on under its id."""
    text = "\n".join((*map(str, plan), str(attempt)))
    return uuid.uuid5(_NAMESPACE, text).hex


def slug(name: str) -> str:
    """The name of a job as Sentry takes it: small letters, digits, - and _, and not long."""
    text = re.sub(r"[^a-z0-9_-]+", "-", name.lower())
    if len(text) <= LONGEST_SLUG:
        return text
    mark = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{text[: LONGEST_SLUG - _HASH_LENGTH - 1]}-{mark}"


def monitor(terms: JobTerms) -> dict[str, Any]:
    """The monitor of a job, with times in whole minutes."""
    schedule = terms.schedule
    if isinstance(schedule, Cron):
        when: dict[str, Any] = {"type": "crontab", "value": schedule.expression}
        timezone = schedule.timezone
    else:
        minutes = _minutes(schedule.every_ms / 1000)
        when = {"type": "interval", "value": minutes, "unit": "minute"}
        timezone = "UTC"
    return {
        "schedule": when,
        "timezone": timezone,
        "checkin_margin": MARGIN_MIN + math.ceil(terms.delay_s / _MINUTE_S),
        "max_runtime": _minutes(terms.run_timeout_s),
    }


def _minutes(seconds: float) -> int:
    return max(1, math.ceil(seconds / _MINUTE_S))
