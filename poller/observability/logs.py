"""One log line per event, as text or JSON, for every role and for the libraries it uses."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from poller.observability.repeated_lines import RepeatedLines
from poller.observability.stderr_handler import StderrHandler

#: The fields of a log record, without secrets.
Redact = Callable[[Mapping[str, Any]], dict[str, Any]]


def _drop_colour(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Drop the copy of a message that uvicorn adds with colours."""
    event.pop("color_message", None)
    return event


def _shorten_lost_connection(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Replace the traceback that Celery or kombu logs for a lost connection by the error's text."""
    exc_info = event.get("exc_info")
    error = exc_info[1] if isinstance(exc_info, tuple) else None
    is_theirs = str(event.get("logger", "")).startswith(("celery.", "kombu."))
    is_lost = isinstance(error, OSError) or type(error).__module__ == "redis.exceptions"
    if is_theirs and is_lost:
        del event["exc_info"]
        event["error"] = str(error)
    return event


_SHARED: list[Any] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    _drop_colour,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _shorten_lost_connection,
    structlog.processors.format_exc_info,
]

#: Levels of loggers whose lower records (each task, each connection) do not help an operator.
_LEVELS = {
    "celery.worker.strategy": "WARNING",
    "celery.worker.consumer.consumer": "WARNING",
    "celery.worker.control": "WARNING",
    "celery.app.trace": "WARNING",
    "celery.beat": "WARNING",
    "redbeat.schedulers": "WARNING",
    "kombu": "WARNING",
    # After a lost connection kombu logs three times that it cannot restore messages; the board's
    # leases restore the targets.
    "kombu.transport.virtual.base": "CRITICAL",
    "kombu.utils.div": "CRITICAL",
    "uvicorn.access": "WARNING",
    "uvicorn.error": "ERROR",  # a client could fill the log with wrong requests
    "alembic": "WARNING",
    "librouteros": "CRITICAL",  # DEBUG records contain passwords
}


def configure(level: str = "INFO", form: str = "text", redact: Redact = dict) -> None:
    """Send all records to stderr in one form, redacted. Idempotent."""

    def without_secrets(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
        return redact(event)

    renderer: Any = structlog.processors.JSONRenderer() if form == "json" else _plain_lines()
    shared = [*_SHARED, without_secrets]
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": shared,
        "processors": [remove_meta, renderer],
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"poller": formatter},
            "filters": {"repeated": {"()": RepeatedLines}},
            "handlers": {
                "stderr": {
                    "()": StderrHandler,
                    "formatter": "poller",
                    "filters": ["repeated"],
                }
            },
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {name: {"level": lowest} for name, lowest in _LEVELS.items()},
        }
    )
    wrap = structlog.stdlib.ProcessorFormatter.wrap_for_formatter
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, wrap],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # modules make their loggers before this runs
    )


def _plain_lines() -> Any:
    """A renderer of one line per record, without colours."""
    plain = structlog.dev.plain_traceback
    return structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=plain)


def get(name: str) -> Any:
    """A logger; a call takes an event in the past tense and facts: `log.info("saved", rows=3)`."""
    return structlog.stdlib.get_logger(name)
