"""Reports of bugs and store failures to Sentry: every logged error that is not a device's.

The client patches nothing, and nothing runs per poll: a report starts from a log record. Reports
are rate-limited, scrubbed and sent by a thread; a slow or absent Sentry delays no poll and no stop.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.observability import logs, scrubber
from poller.observability.report_quota import Quota

if TYPE_CHECKING:
    import sentry_sdk

log = logs.get(__name__)

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

#: Time limit of sending one report; the next report waits for it.
SEND_S = 5
#: Reports and check-ins that may wait to be sent; more are dropped.
QUEUE_SIZE = 100
#: A process that dies of a bug waits this long for its report; one that is stopped does not wait.
EXIT_FLUSH_S = 1.0
#: Loggers of the reporting itself; a report of their records would cause another report.
_OWN_LOGGERS = ("sentry_sdk", "urllib3", __name__)
_NOT_FACTS = frozenset(
    {"event", "exception", "level", "logger", "timestamp", "exc_info", "stack_info"}
)


@dataclass(frozen=True, slots=True)
class Destination:
    """The Sentry project, and the limit of reports per minute. Its repr hides the DSN."""

    dsn: str
    environment: str
    per_minute: int

    def __repr__(self) -> str:
        return f"Destination({self.environment!r})"


class Reporter(logging.Handler):
    """A handler of the root logger. `redact` masks the secrets of this process in a text."""

    def __init__(self, to: Destination, role: str, redact: scrubber.Redact) -> None:
        super().__init__(logging.ERROR)
        if find_spec("sentry_sdk") is None:
            raise errors.InvalidSetting(
                "sentry_dsn is set, but Sentry's client is not installed",
                hint="pip install 'poller[sentry]'",
            )
        self._to = to
        self._role = role
        self._redact = redact
        self._quota = Quota(to.per_minute)
        self._undelivered = Quota(1)
        self._client: sentry_sdk.Client | None = None
        self._pid = 0
        self._dying = False
        self._connected()  # refuses an unusable DSN at start

    def emit(self, record: logging.LogRecord) -> None:
        """Report one log record. Never raises."""
        if record.name.startswith(_OWN_LOGGERS):
            return
        try:
            self._report(record)
        except Exception:  # noqa: BLE001  door: the SDK; a log handler must not raise
            self.handleError(record)

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event that is no log record, such as a check-in. Never raises."""
        try:
            self._connected().capture_event(dict(event))  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001  door: the SDK; no work fails because of a report
            self._log_undelivered("cannot be sent")

    def flush_at_exit(self) -> None:
        """Wait a moment for the report of the bug that ends this process, if there is one."""
        client = self._client
        is_inherited = self._pid != os.getpid()
        if client is None or is_inherited:
            return
        if self._dying:
            client.flush(EXIT_FLUSH_S)

    def _report(self, record: logging.LogRecord) -> None:
        exc_info = _exc_info(record)
        error = exc_info[1] if exc_info else None
        if not _is_ours(error):
            return

        facts = _facts(record)
        fingerprint = _fingerprint(record, error, facts)
        suppressed = self._quota.admit(tuple(fingerprint))
        if suppressed is None:
            return

        is_fatal = record.levelno >= logging.CRITICAL
        self._dying = self._dying or is_fatal
        client = self._connected()

        event: dict[str, Any] = _described(exc_info, client.options)
        event["logentry"] = {"formatted": _message(record)}
        event["level"] = "fatal" if is_fatal else "error"
        event["logger"] = record.name
        event["fingerprint"] = fingerprint
        event["tags"] = _tags(self._role, error, facts)
        event["extra"] = {**facts, "unsaid_since_the_last": suppressed}
        client.capture_event(event)  # type: ignore[arg-type]

    def _connected(self) -> sentry_sdk.Client:
        """The client of this process; a forked child must not use its parent's connection."""
        if self._client is None or self._pid != os.getpid():
            self._client = _client(self._to, self._scrub, self._log_undelivered)
            self._pid = os.getpid()
        return self._client

    def _scrub(self, event: Any, _hint: Any) -> Any:
        """Scrub the complete event just before it is sent; after an error here nothing is sent."""
        return scrubber.scrubbed(event, self._redact)

    def _log_undelivered(self, reason: str) -> None:
        """Log a lost report, at most once a minute."""
        if self._undelivered.admit("") is not None:
            log.warning("report_not_delivered", reason=reason)


def install(reporter: Reporter) -> None:
    """Report uncaught exceptions of all threads too. Call once per process."""
    previous_hook = sys.excepthook
    previous_thread_hook = threading.excepthook

    def uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        _report_uncaught(reporter, "process_died", (kind, error, trace), logging.CRITICAL)
        previous_hook(kind, error, trace)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            exc_info = (args.exc_type, args.exc_value, args.exc_traceback)
            _report_uncaught(reporter, "thread_died", exc_info, logging.ERROR)
        previous_thread_hook(args)

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    atexit.register(reporter.flush_at_exit)


def _report_uncaught(reporter: Reporter, event: str, exc_info: ExcInfo, level: int) -> None:
    """Report an exception that reached the end of its thread."""
    record = logging.LogRecord(
        name="poller",
        level=level,
        pathname="",
        lineno=0,
        msg=event,
        args=(),
        exc_info=exc_info,
    )
    reporter.handle(record)


def _is_ours(error: BaseException | None) -> bool:
    """False for failures of devices and mistakes of operators: neither is a bug."""
    if isinstance(error, errors.DeviceError):
        return isinstance(error, errors.CollectorCrashed)
    return not isinstance(error, errors.ConfigError | SystemExit | KeyboardInterrupt)


def _exc_info(record: logging.LogRecord) -> ExcInfo | None:
    """The exception of the record, or the one that is being handled now."""
    exc_info = record.exc_info if isinstance(record.exc_info, tuple) else sys.exc_info()
    kind, error, trace = exc_info
    if kind is None or error is None:
        return None
    return kind, error, trace


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of the record besides its message."""
    if isinstance(record.msg, Mapping):  # a record of logs.py
        facts = {}
        for key, value in record.msg.items():
            if key not in _NOT_FACTS and not key.startswith("_"):
                facts[key] = value
        return facts
    collector = getattr(record, "collector", None)
    return {"collector": collector} if collector else {}


def _message(record: logging.LogRecord) -> str:
    """The text of a record, with its arguments."""
    if isinstance(record.msg, Mapping):
        return str(record.msg.get("event", ""))
    return record.getMessage()


def _fingerprint(
    record: logging.LogRecord, error: BaseException | None, facts: Mapping[str, Any]
) -> list[str]:
    """The group of a report: collector and error class, or store and error class, else
    also the place in the code."""
    kind = type(error).__name__ if error is not None else ""

    collector = facts.get("collector")
    if collector:
        return ["collector", str(collector), kind or _template(record)]

    if isinstance(error, errors.StoreError):
        cause = type(error.__cause__).__name__ if error.__cause__ else ""
        return ["store", kind, cause]

    return ["poller", record.name, _template(record), kind, _place(error)]


def _template(record: logging.LogRecord) -> str:
    """The message without its arguments, so that messages with different numbers are the same."""
    if isinstance(record.msg, Mapping):
        return str(record.msg.get("event", ""))
    return str(record.msg)[:200]


def _place(error: BaseException | None) -> str:
    """Module and function; a line number would change with the next release."""
    trace = error.__traceback__ if error is not None else None
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    module = frame.f_globals.get("__name__", "")
    return f"{module}.{frame.f_code.co_name}"


def _tags(role: str, error: BaseException | None, facts: Mapping[str, Any]) -> dict[str, str]:
    """Searchable fields of a report."""
    tags = {"role": role}
    if error is not None:
        tags["error_class"] = type(error).__name__
    collector = facts.get("collector")
    if collector:
        tags["collector"] = str(collector)
    return tags


def _described(exc_info: ExcInfo | None, options: dict[str, Any]) -> dict[str, Any]:
    """The exception with its causes and frames, in Sentry's form."""
    if exc_info is None:
        return {}
    from sentry_sdk.utils import event_from_exception

    event, _ = event_from_exception(
        exc_info, client_options=options, mechanism={"type": "logging", "handled": True}
    )
    return dict(event)


def _client(
    to: Destination, scrub: Callable[[Any, Any], Any], on_undelivered: Callable[[str], None]
) -> sentry_sdk.Client:
    """A client without integrations, spans and sessions: it patches nothing and sends only events
    it is given."""
    import sentry_sdk
    from sentry_sdk.transport import HttpTransport

    class Transport(HttpTransport):
        TIMEOUT = SEND_S

        def _get_pool_options(self) -> dict[str, Any]:
            return {**super()._get_pool_options(), "retries": False}

        def on_dropped_event(self, reason: str) -> None:
            on_undelivered(reason)

    return sentry_sdk.Client(
        dsn=to.dsn,
        environment=to.environment,
        release=f"poller@{version('poller')}",
        transport=Transport,
        transport_queue_size=QUEUE_SIZE,
        before_send=scrub,
        default_integrations=False,
        auto_enabling_integrations=False,
        include_local_variables=False,  # a collector's frame holds a credential
        max_breadcrumbs=0,
        traces_sample_rate=None,
        auto_session_tracking=False,
        send_client_reports=False,
        enable_backpressure_handling=False,
        enable_metrics=False,
        spotlight=False,
    )
