"""Runs of jobs in words, the same for the command line and the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from poller.domain.inventory import duration
from poller.domain.jobs.job_run import JobRun, Origin

#: Characters of a result on one line; `--json` and the page of the job have all of it.
LONGEST_RESULT = 300


def attempts(attempt: int, most: int) -> str:
    """`2 of 3`; `1` for a run that has no second attempt."""
    return f"{attempt} of {most}" if most > 1 else str(attempt)


def late(origin: Origin, late_ms: int | None) -> str:
    """`150 ms` after its plan, or `by hand`; "" for a further attempt."""
    if origin is Origin.DEMAND:
        return "by hand"
    return "" if late_ms is None else duration.rounded_text(late_ms)


def outcome(run: JobRun) -> str:
    """The end of a run on one line: its error, or the details of its result."""
    return error(run.error_code, run.message) or details(run.result)


def error(code: str, message: str) -> str:
    """`handler_error: OSError: no route`; "" without an error."""
    return ": ".join(part for part in (code, message) if part)


def details(result: Mapping[str, Any]) -> str:
    """The details as `name=value name=value`, shortened."""
    text = " ".join(f"{name}={value(part)}" for name, part in result.items())
    return text if len(text) <= LONGEST_RESULT else text[: LONGEST_RESULT - 1] + "…"


def value(part: Any) -> str:
    """One value: a plain text as it is, anything else as JSON without spaces."""
    if isinstance(part, str) and part and not any(c.isspace() for c in part):
        return part
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"), default=str)
