"""The metrics that users of blackbox_exporter expect, from the readings of our collectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poller.domain.metrics.reading import Reading, ReadingSet

#: The texts of blackbox_exporter.
HELP = {
    "probe_success": "Displays whether or not the probe was a success",
    "probe_duration_seconds": "Returns how long the probe took to complete in seconds",
    "probe_icmp_duration_seconds": "Duration of icmp request by phase",
    "probe_http_status_code": "Response HTTP status code",
    "probe_http_duration_seconds": ("Duration of http request by phase, summed over all redirects"),
    "probe_http_redirects": "The number of redirects",
    "probe_http_uncompressed_body_length": "Length of uncompressed response body",
    "probe_http_ssl": "Indicates if SSL was used for the final redirect",
    "probe_ssl_earliest_cert_expiry": "Returns earliest SSL cert expiry in unixtime",
}
#: Our names of phases, and theirs.
_PHASES = {
    "resolve": "resolve",
    "connect": "connect",
    "tls": "tls",
    "first_byte": "processing",
    "transfer": "transfer",
}
_RENAMED = {
    "http_status": "probe_http_status_code",
    "http_redirects": "probe_http_redirects",
    "http_body_bytes": "probe_http_uncompressed_body_length",
}


def readings(
    found: ReadingSet | None, is_good: bool, duration_s: float, at_ms: int
) -> list[Reading]:
    """Return the metrics of a probe. A probe without readings was no success."""
    made = [
        Reading("probe_success", 1.0 if is_good else 0.0),
        Reading("probe_duration_seconds", duration_s),
    ]
    for reading in found or ():
        made += _of_reading(reading, at_ms)
        if reading.name == "ping_info" and reading.labels.get("method") != "icmp":
            return made  # a ping by TCP has no durations of ICMP
    return made


def _of_reading(reading: Reading, at_ms: int) -> Iterator[Reading]:
    name, labels, value = reading.name, reading.labels, reading.value
    if name in _RENAMED:
        yield Reading(_RENAMED[name], value)
    elif name == "ping_rtt_avg_seconds":
        yield Reading("probe_icmp_duration_seconds", value, {"phase": "rtt"})
    elif name == "http_phase_seconds":
        yield from _phase(labels, value)
    elif name == "http_tls_expiry_seconds":
        yield Reading("probe_http_ssl", 1.0)
        yield Reading("probe_ssl_earliest_cert_expiry", round(at_ms / 1000 + value))


def _phase(labels: Mapping[str, str], value: float) -> Iterator[Reading]:
    phase = _PHASES.get(next(iter(labels.values()), ""))
    if phase is not None:
        yield Reading("probe_http_duration_seconds", value, {"phase": phase})
