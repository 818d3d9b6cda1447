"""Reports our own bugs and store failures to Sentry: everything that is logged as an error, and is not a device's.

Nothing is patched and nothing runs per poll: a report begins with a log record. It is limited, scrubbed, and sent
by a thread of its own; a Sentry that is slow or gone delays neither a poll nor a stop.
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

#: One attempt takes no longer; the next report has to wait for it.
SEND_S = 5
#: Reports that wait to be sent. More are dropped.
WAITING = 30
#: A process that dies of a bug waits so long for the report of it. One that is told to stop does not.
LAST_WORDS_S = 1.0
#: Their records are about sending reports: to report these would go round in circles.
_OWN = ("sentry_sdk", "urllib3", __name__)
_NOT_FACTS = frozenset(
    {"event", "exception", "level", "logger", "timestamp", "exc_info", "stack_info"}
)


@dataclass(frozen=True, slots=True)
class Destination:
    dsn: str
    environment: str
    per_minute: int

    def __repr__(self) -> str:
        return f"Destination({self.environment!r})"


class Reporter(logging.Handler):
    """A log handler: add it to the root logger. `known` masks the secrets of this process in a text."""

    def __init__(self, to: Destination, role: str, known: Callable[[str], str]) -> None:
        super().__init__(logging.ERROR)
        if find_spec("sentry_sdk") is None:
            raise errors.InvalidSetting(
                "sentry_dsn is set, but Sentry's client is not installed",
                hint="pip install 'poller[sentry]'",
            )
        self._to = to
        self._role = role
        self._known = known
        self._quota = Quota(to.per_minute)
        self._undelivered = Quota(1)
        self._client: sentry_sdk.Client | None = None
        self._pid = 0
        self._dying = False
        self._connected()  # a DSN that cannot be used is refused now

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a report that cannot be made is no reason to fail."""
        if record.name.startswith(_OWN):
            return
        try:
            self._report(record)
        except Exception:  # noqa: BLE001  the last line, like every log handler's
            self.handleError(record)

    def last_words(self) -> None:
        """At exit: wait a moment for the report of what the process died of, if there is one."""
        if self._dying and self._client is not None and self._pid == os.getpid():
            self._client.flush(LAST_WORDS_S)

    def _report(self, record: logging.LogRecord) -> None:
        exc_info = _exc_info(record)
        error = exc_info[1] if exc_info else None
        if not _is_ours(error):
            return
        facts = _facts(record)
        print_ = _fingerprint(record, error, facts)
        unsaid = self._quota.admit(tuple(print_))
        if unsaid is None:
            return
        self._dying = self._dying or record.levelno >= logging.CRITICAL
        client = self._connected()
        event: dict[str, Any] = _described(exc_info, client.options)
        event["logentry"] = {"formatted": _sentence(record)}
        event["level"] = "fatal" if record.levelno >= logging.CRITICAL else "error"
        event["logger"] = record.name
        event["fingerprint"] = print_
        event["tags"] = _tags(self._role, error, facts)
        event["extra"] = {**facts, "unsaid_since_the_last": unsaid}
        client.capture_event(event)  # type: ignore[arg-type]

    def _connected(self) -> sentry_sdk.Client:
        """A client of this very process: a forked child must not write to its parent's connection."""
        if self._client is None or self._pid != os.getpid():
            self._client, self._pid = (
                _client(self._to, self._scrub, self._note_undelivered),
                os.getpid(),
            )
        return self._client

    def _scrub(self, event: Any, _hint: Any) -> Any:
        """Called last, with all that would be sent. If it fails, the client sends nothing."""
        return scrubber.scrubbed(event, self._known)

    def _note_undelivered(self, reason: str) -> None:
        if self._undelivered.admit("") is not None:
            log.warning("report_not_delivered", reason=reason)


def install(reporter: Reporter) -> None:
    """Also report what nobody catches, in any thread. Call once per process."""
    before, before_in_threads = sys.excepthook, threading.excepthook

    def uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        _note_death(reporter, "process_died", (kind, error, trace), logging.CRITICAL)
        before(kind, error, trace)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            _note_death(
                reporter,
                "thread_died",
                (args.exc_type, args.exc_value, args.exc_traceback),
                logging.ERROR,
            )
        before_in_threads(args)

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    atexit.register(reporter.last_words)


def _note_death(reporter: Reporter, what: str, exc_info: ExcInfo, level: int) -> None:
    reporter.handle(logging.LogRecord("poller", level, "", 0, what, (), exc_info))


def _is_ours(error: BaseException | None) -> bool:
    """A device's trouble is data and an operator's mistake is told to the operator; neither is for developers."""
    if isinstance(error, errors.DeviceError):
        return isinstance(error, errors.CollectorCrashed)
    return not isinstance(error, errors.ConfigError | SystemExit | KeyboardInterrupt)


def _exc_info(record: logging.LogRecord) -> ExcInfo | None:
    """The record's exception, or the one that is being handled while it is written."""
    found = record.exc_info if isinstance(record.exc_info, tuple) else sys.exc_info()
    return found if found[0] is not None and found[1] is not None else None


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """What the record says besides its sentence."""
    if isinstance(record.msg, Mapping):  # ours: see logs.py
        return {
            key: value
            for key, value in record.msg.items()
            if key not in _NOT_FACTS and not key.startswith("_")
        }
    collector = getattr(record, "collector", None)
    return {"collector": collector} if collector else {}


def _sentence(record: logging.LogRecord) -> str:
    return (
        str(record.msg.get("event", "")) if isinstance(record.msg, Mapping) else record.getMessage()
    )


def _fingerprint(
    record: logging.LogRecord, error: BaseException | None, facts: Mapping[str, Any]
) -> list[str]:
    """What counts as the same: collector and error class; of a store, the error class; else also where it happened."""
    kind = type(error).__name__ if error is not None else ""
    if facts.get("collector"):
        return ["collector", str(facts["collector"]), kind or _template(record)]
    if isinstance(error, errors.StoreError):
        return ["store", kind, type(error.__cause__).__name__ if error.__cause__ else ""]
    return ["poller", record.name, _template(record), kind, _place(error)]


def _template(record: logging.LogRecord) -> str:
    """The sentence before anything was filled in, so that a thousand of them are one."""
    return (
        str(record.msg.get("event", ""))
        if isinstance(record.msg, Mapping)
        else str(record.msg)[:200]
    )


def _place(error: BaseException | None) -> str:
    """Module and function, no line: it is the same bug in the next release."""
    trace = error.__traceback__ if error is not None else None
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__', '')}.{trace.tb_frame.f_code.co_name}"


def _tags(role: str, error: BaseException | None, facts: Mapping[str, Any]) -> dict[str, str]:
    tags = {"role": role}
    if error is not None:
        tags["error_class"] = type(error).__name__
    if facts.get("collector"):
        tags["collector"] = str(facts["collector"])
    return tags


def _described(exc_info: ExcInfo | None, options: dict[str, Any]) -> dict[str, Any]:
    """The exception with its causes and frames, as the client's own functions put it."""
    if exc_info is None:
        return {}
    from sentry_sdk.utils import event_from_exception

    event, _ = event_from_exception(
        exc_info, client_options=options, mechanism={"type": "logging", "handled": True}
    )
    return dict(event)


def _client(
    to: Destination, scrub: Callable[[Any, Any], Any], note_undelivered: Callable[[str], None]
) -> sentry_sdk.Client:
    """A client that patches nothing and knows nothing but what it is handed: no integrations, spans, sessions."""
    import sentry_sdk
    from sentry_sdk.transport import HttpTransport

    class Transport(HttpTransport):
        TIMEOUT = SEND_S

        def _get_pool_options(self) -> dict[str, Any]:
            return {**super()._get_pool_options(), "retries": False}

        def on_dropped_event(self, reason: str) -> None:
            note_undelivered(reason)

    return sentry_sdk.Client(
        dsn=to.dsn,
        environment=to.environment,
        release=f"poller@{version('poller')}",
        transport=Transport,
        transport_queue_size=WAITING,
        before_send=scrub,
        default_integrations=False,
        auto_enabling_integrations=False,
        include_local_variables=False,  # a frame of a collector holds its credential
        max_breadcrumbs=0,
        traces_sample_rate=None,
        auto_session_tracking=False,
        send_client_reports=False,
        enable_backpressure_handling=False,
        enable_metrics=False,
        spotlight=False,
    )
