"""A receiver of traces by OTLP/HTTP on loopback, as an OpenTelemetry collector is one."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class ReceivedSpan:
    """A span as it was sent."""

    def __init__(self, span: Any, service: str) -> None:
        self.service = service
        self.name: str = span.name
        self.trace_id = span.trace_id.hex()
        self.span_id = span.span_id.hex()
        self.parent_id = span.parent_span_id.hex()
        self.seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        self.is_error = span.status.code == span.status.STATUS_CODE_ERROR
        self.attributes = {item.key: _value(item.value) for item in span.attributes}
        self.text = str(span)  # everything that left the process


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


class TraceReceiver:
    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def take(self, request: ExportTraceServiceRequest) -> None:
        for group in request.resource_spans:
            names = {item.key: _value(item.value) for item in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += [ReceivedSpan(span, names["service.name"]) for span in scope.spans]

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    @contextmanager
    def running(self) -> Iterator[TraceReceiver]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
