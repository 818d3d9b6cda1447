"""One log line per event, as text or JSON, for every role and for the libraries under us."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Callable, Mapping
from typing import Any

import structlog

#: A record's fields -> the same without secrets.
Redact = Callable[[Mapping[str, Any]], dict[str, Any]]


def _drop_colour(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    event.pop("color_message", None)  # uvicorn says some things twice
    return event


_SHARED: list[Any] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    _drop_colour,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]

#: Two lines per task, every new connection: of no use to an operator.
_QUIET = {
    "celery.worker.strategy": "WARNING",
    "celery.worker.consumer.consumer": "WARNING",
    "celery.worker.control": "WARNING",
    "celery.app.trace": "WARNING",
    "celery.beat": "WARNING",
    "redbeat.schedulers": "WARNING",
    "kombu": "WARNING",
    # After a lost connection kombu cannot put messages back, and says so three times. The board's leases can.
    "kombu.transport.virtual.base": "CRITICAL",
    "kombu.utils.div": "CRITICAL",
    "uvicorn.access": "WARNING",
    "alembic": "WARNING",
    "librouteros": "CRITICAL",  # its DEBUG records contain passwords
}


def configure(level: str = "INFO", form: str = "text", redact: Redact = dict) -> None:
    """Send everything to stderr in one form, without the secrets `redact` knows. Safe to call again."""
    renderer: Any = structlog.processors.JSONRenderer() if form == "json" else _plain_lines()
    shared = [*_SHARED, lambda _logger, _name, event: redact(event)]
    finish = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": shared,
        "processors": [finish, renderer],
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"poller": formatter},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "poller"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {name: {"level": quiet} for name, quiet in _QUIET.items()},
        }
    )
    wrap = structlog.stdlib.ProcessorFormatter.wrap_for_formatter
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, wrap],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # modules make their loggers before anybody configures them
    )


def _plain_lines() -> Any:
    plain = structlog.dev.plain_traceback
    return structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=plain)


def get(name: str) -> Any:
    """A logger whose calls take an event in the past tense and its facts: `log.info("target_reaped", count=3)`."""
    return structlog.stdlib.get_logger(name)
