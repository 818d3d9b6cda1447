"""Traces of polls for OpenTelemetry: dispatch -> batch -> target and writes. Off unless an endpoint
is set; then the leader chooses a share of the batches, and only they cost anything.

The context of a chosen batch travels in its Celery message. Nothing of OpenTelemetry is imported
while traces are off, and nothing is patched. A span holds names, numbers and codes: never an
address, a text of a device or a credential.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.observability import logs

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

log = logs.get(__name__)

#: The header of a message that carries the context, in the form of W3C Trace Context.
HEADER = "traceparent"
#: Time for one delivery. A separate thread delivers, so no poll waits.
DELIVERY_S = 5.0
#: Spans that may wait for their delivery; beyond that the newest are dropped.
MOST_WAITING = 4096

Attributes = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class TraceDestination:
    """Where traces go, and the share of batches that is traced."""

    endpoint: str
    ratio: float


class Dispatch:
    """The traced batches of one claim."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._started_ns = time.time_ns()
        self._spans: list[Span] = []

    def headers(self, attributes: Attributes) -> dict[str, str]:
        """The headers of the next batch; none for a batch that is not traced."""
        span = self._tracer.start_span(
            "dispatch batch", start_time=self._started_ns, attributes=_named(attributes)
        )
        if not span.is_recording():
            return {}
        self._spans.append(span)
        context = span.get_span_context()
        return {HEADER: f"00-{context.trace_id:032x}-{context.span_id:016x}-01"}

    def end(self) -> None:
        """End the spans: the batches are published."""
        for span in self._spans:
            span.end()


class BatchTrace:
    """One traced batch in a worker, safe for the one thread that runs the batch."""

    def __init__(self, tracer: Tracer, parent: Context, attributes: Attributes) -> None:
        from opentelemetry import trace

        self._tracer = tracer
        self._span = tracer.start_span("poll batch", parent, attributes=_named(attributes))
        self._context = trace.set_span_in_context(self._span, parent)

    def add(
        self,
        name: str,
        started_mono: float,
        ended_mono: float,
        attributes: Attributes,
        error_code: str = "",
    ) -> None:
        """Add a step that has ended. Its instants are of the monotonic clock."""
        from opentelemetry.trace import Status, StatusCode

        offset_ns = time.time_ns() - time.monotonic_ns()
        span = self._tracer.start_span(
            name,
            self._context,
            attributes=_named(attributes),
            start_time=offset_ns + round(started_mono * 1e9),
        )
        if error_code:
            span.set_status(Status(StatusCode.ERROR, error_code))
        span.end(offset_ns + round(ended_mono * 1e9))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add what the context does as a step."""
        started_mono = time.monotonic()
        try:
            yield
        finally:
            self.add(name, started_mono, time.monotonic(), {})

    def end(self) -> None:
        """End the batch."""
        self._span.end()


class _Tracing:
    """The provider of this process."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self.tracer = provider.get_tracer("poller")


_active: _Tracing | None = None
_NOTHING: AbstractContextManager[None] = nullcontext()


def start(destination: TraceDestination, role: str) -> None:
    """Trace from now on. Raises InvalidSetting without the extra `otel`."""
    global _active
    try:
        _active = _Tracing(_provider(destination, role))
    except ImportError as error:
        raise errors.InvalidSetting(
            "trace_endpoint: traces need OpenTelemetry, which is not installed",
            str(error),
            "pip install 'poller[otel]'",
        ) from None


def stop() -> None:
    """Deliver what waits, and trace no more."""
    global _active
    if _active is not None:
        _active.provider.shutdown()
    _active = None


def begin_dispatch() -> Dispatch | None:
    """Begin to dispatch a claim; None while traces are off."""
    return Dispatch(_active.tracer) if _active is not None else None


def begin_batch(header: str | None, attributes: Attributes) -> BatchTrace | None:
    """Begin a batch that the leader chose; None for every other one."""
    if _active is None or not header:
        return None
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract({HEADER: header})
    if not trace.get_current_span(parent).get_span_context().is_valid:
        return None
    return BatchTrace(_active.tracer, parent, attributes)


def step(trace: BatchTrace | None, name: str) -> AbstractContextManager[None]:
    """A step of a batch; nothing for a batch that is not traced."""
    return _NOTHING if trace is None else trace.step(name)


def _provider(destination: TraceDestination, role: str) -> TracerProvider:
    from importlib.metadata import version

    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    names = {"service.name": f"poller-{role}", "service.version": version("poller")}
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(destination.ratio)),
        resource=Resource(names),
        shutdown_on_exit=False,  # a stop does not wait for traces
    )
    processor = BatchSpanProcessor(
        _exporter(destination.endpoint),
        max_queue_size=MOST_WAITING,
        schedule_delay_millis=1000,
    )
    provider.add_span_processor(processor)
    return provider


def _exporter(endpoint: str) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class Exporter(OTLPSpanExporter):
        """Says in our own words that traces are not delivered."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            if result is not SpanExportResult.SUCCESS:
                log.warning("traces_not_delivered")
            return result

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return Exporter(endpoint=endpoint, timeout=DELIVERY_S)


def _named(attributes: Attributes) -> dict[str, Any]:
    return {f"poller.{name}": value for name, value in attributes.items()}
