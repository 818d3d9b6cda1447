"""The `influx` sink: line protocol over HTTP, for InfluxDB, VictoriaMetrics, QuestDB, Telegraf.

A point is identified by its tags and its time, so that a repeated write changes nothing in
InfluxDB. The paths are those of InfluxDB 1 (`database`) and InfluxDB 2 (`bucket` and `org`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlencode

from pydantic import Field, model_validator

from poller import errors
from poller.domain.metrics import line_protocol
from poller.domain.metrics.line_protocol import Layout, LineForm, ShapeLines
from poller.sinks import bisection
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.http_store import HttpStore
from poller.sinks.outside_series import SeriesMapper, SeriesOptions
from poller.sinks.shape_cache import ShapeCache
from poller.sinks.store_connection import Answer

_DROPPED = re.compile(r"dropped=(\d+)")
#: Statuses of a request that can succeed in smaller parts.
_DIVISIBLE = frozenset({400, 413, 422})


class InfluxOptions(HttpStoreOptions, SeriesOptions):
    """The options of an `influx` sink."""

    database: str = Field("", description="Database of InfluxDB 1; other stores may need none.")
    retention_policy: str = Field("", description="Retention policy of `database`.")
    org: str = Field("", description="Organisation of InfluxDB 2, with `bucket`.")
    bucket: str = Field(
        "", description="Bucket of InfluxDB 2 or 3: chooses the path /api/v2/write."
    )
    layout: Layout = Field(
        Layout.ROW,
        description="row: a line per set of labels, with a field per metric, as Telegraf writes; "
        "metric: a line per metric, with the one field `field`.",
    )
    measurement: str = Field("", description="Measurement of rows; the collector's name if empty.")
    field: str = Field("value", min_length=1, description="Name of the field with layout = metric.")
    counters: Literal["float", "integer"] = Field(
        "float",
        description="Type of counters whose width is known. A field of InfluxDB never changes its "
        "type: float fits everything.",
    )
    max_lines: int = Field(5000, ge=1, le=100_000, description="Lines of one request at most.")
    gzip: bool = Field(False, description="Compress requests: less traffic, more CPU.")

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if "?" in self.url:
            raise ValueError("the url has no query: database, bucket and org are options")
        if self.bucket and self.database:
            raise ValueError("give database (InfluxDB 1) or bucket and org (InfluxDB 2), not both")
        if self.org and not self.bucket:
            raise ValueError("org needs bucket")
        if self.retention_policy and not self.database:
            raise ValueError("retention_policy needs database")
        return self

    @property
    def form(self) -> LineForm:
        integers = self.counters == "integer"
        return LineForm(self.layout, self.measurement, self.field, integers)


class InfluxSink:
    name: ClassVar[str] = "influx"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[InfluxOptions]] = InfluxOptions
    #: About 5,000 lines: what InfluxDB recommends for one request.
    write_polls: ClassVar[int] = 256

    def __init__(self, stores: Stores, options: InfluxOptions) -> None:
        self._options = options
        self._form = options.form
        self._dropped = stores.dropped
        self._store = HttpStore(
            options, stores.name, auth_scheme="Token" if options.bucket else "Bearer"
        )
        self._path = _write_path(self._store.url.target, options)
        self._shapes: ShapeCache[ShapeLines] = ShapeCache()
        self._mapper = SeriesMapper(options, stores.name)

    def write(self, samples: Sequence[Sample]) -> None:
        """Write the lines of the polls. A repeated call writes the same points again."""
        for lines in _requests(self._poll_lines(samples), self._options.max_lines):
            bisection.send(lines, self._request, self._leave_out)
        self._count_unwritten(samples)

    def check(self) -> str:
        """Say what the store answers to /ping, which InfluxDB has."""
        base = self._store.url.target.rstrip("/")
        answer = self._store.get(f"{base}/ping")
        version = answer.headers.get("x-influxdb-version")
        store = f"InfluxDB {version}" if version else f"status {answer.status} for /ping"
        return f"{self._store.url}: {store}"

    def close(self) -> None:
        self._store.close()

    def _poll_lines(self, samples: Sequence[Sample]) -> Iterator[str]:
        for sample in samples:
            text = self._shape_lines(sample).text(sample.readings.values, sample.at_ms)
            if text:
                yield text

    def _count_unwritten(self, samples: Sequence[Sample]) -> None:
        """Count the samples that no line has, once: after a failed call all polls come again."""
        for sample in samples:
            lines = self._shape_lines(sample)
            name = sample.target.name
            if lines.doubled:
                reason = f"{name} {lines.doubled[0]}: alike in line protocol"
                self._dropped(len(lines.doubled), reason)
            unwritable = lines.unwritable(sample.readings.values)
            if unwritable:
                self._dropped(unwritable, f"{name}: too large for an integer")

    def _shape_lines(self, sample: Sample) -> ShapeLines:
        target, shape = sample.target, sample.readings.series
        key = (target.id, target.version, shape.id)
        lines = self._shapes.get(key)
        if lines is None:
            outside = self._mapper.outside(target, shape)
            # Lines leave out the second of two series that are one in the store.
            series = outside.series + outside.doubled
            lines = line_protocol.shape_lines(series, shape, target.collector, self._form)
            self._shapes.put(key, lines, len(shape))
        return lines

    def _request(self, lines: Sequence[str]) -> errors.StoreError | None:
        """Send one request. Returns the refusal of a store that took no line. Raises StoreError."""
        body = "\n".join(lines).encode()
        answer = self._store.post(self._path, body, _TEXT, zipped=self._options.gzip)
        if 200 <= answer.status < 300:
            return None
        message = _message(answer)
        if "partial write" in message:
            self._dropped(min(_dropped_points(message), len(lines)), message)
            return None
        refusal = self._store.failure(answer._replace(body=message.encode()), _hint(message))
        if answer.status in _DIVISIBLE and not isinstance(refusal, errors.StoreUnavailable):
            if "database is required" in message:
                raise errors.StoreUnavailable(refusal.message, message, _NO_DATABASE)
            return refusal
        raise refusal

    def _leave_out(self, line: str, refusal: errors.StoreError) -> None:
        fields = line.rsplit(" ", 2)[1]  # names of metrics have no blank and no comma
        samples = fields.count(",") + 1 if self._form.layout is Layout.ROW else 1
        self._dropped(samples, f"{line.partition(' ')[0]}: {refusal.cause or refusal.message}")


_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
_NO_DATABASE = "give the sink a database (InfluxDB 1), or a bucket and an org (InfluxDB 2)"


def _write_path(base: str, options: InfluxOptions) -> str:
    query = {"precision": "ms"}
    if options.bucket:
        query = {"org": options.org, "bucket": options.bucket, **query}
        return f"{base.rstrip('/')}/api/v2/write?{urlencode(query)}"
    if options.database:
        query["db"] = options.database
    if options.retention_policy:
        query["rp"] = options.retention_policy
    return f"{base.rstrip('/')}/write?{urlencode(query)}"


def _requests(texts: Iterator[str], max_lines: int) -> Iterator[list[str]]:
    """Collect the lines of polls into requests of at most `max_lines` lines."""
    lines: list[str] = []
    for text in texts:
        lines += text.split("\n")
        while len(lines) >= max_lines:
            yield lines[:max_lines]
            del lines[:max_lines]
    if lines:
        yield lines


def _message(answer: Answer) -> str:
    """Return the error text of InfluxDB 1 (`error`) or 2 (`message`), or the body as it is."""
    try:
        body: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        return answer.text
    if isinstance(body, dict):
        for key in ("error", "message"):
            if isinstance(body.get(key), str):
                return answer._replace(body=body[key].encode(errors="replace")).text
    return answer.text


def _dropped_points(message: str) -> int:
    """Return the points that a partial write left out. InfluxDB says 0 for unreadable lines."""
    found = _DROPPED.search(message)
    return max(1, int(found[1])) if found else 1


def _hint(message: str) -> str:
    if "database not found" in message:
        return "create the database: influx -execute 'CREATE DATABASE NAME'"
    if "bucket" in message and "not found" in message:
        return "create the bucket: influx bucket create --name NAME"
    if "retention policy not found" in message:
        return "check retention_policy of the sink"
    return ""
