"""Every metric of a process. docs/metrics.md describes each; a test compares the two."""

from __future__ import annotations

import os

from poller.metering.instruments import CALL_EDGES_S, Counter, Gauge, Histogram, Instrument

#: Upper edges for work that reads a whole fleet, in seconds.
_WORK_EDGES_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
#: Upper edges for answers that may wait for a device, in seconds.
_SCRAPE_EDGES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)

# Stores.
redis_seconds = Histogram("poller_redis_seconds", "Calls to Redis, by script.", "call")
redis_errors = Counter("poller_redis_errors", "Calls to Redis that failed, by kind.", "kind")
sql_seconds = Histogram("poller_sql_seconds", "SQL transactions, by access.", "access")
sql_errors = Counter("poller_sql_errors", "SQL transactions that failed, by kind.", "kind")

# Workers.
leases = Counter("poller_leases", "Leases of targets, by what became of them.", "result")
write_seconds = Histogram(
    "poller_write_seconds", "Writes of results, by destination.", "destination"
)
writes = Counter(
    "poller_writes", "Results of polls, by destination and result.", "destination", "result"
)
series_ends = Counter(
    "poller_series_ends", "Series whose end was sent to sinks that take ends, by reason.", "reason"
)
unknown_ends = Counter(
    "poller_unknown_ends", "Polls after which this worker did not know which series had ended."
)
unjudged_polls = Counter(
    "poller_unjudged_polls", "Polls that a failure kept from being judged by alert rules."
)
credential_cache = Counter(
    "poller_credential_cache", "Credentials that batches needed, by result.", "result"
)
loop_lag_seconds = Histogram(
    "poller_loop_lag_seconds", "Wait of a callback for the poll loop, once a second."
)
loop_stalls = Counter("poller_loop_stalls", "Times the poll loop stood still for a second.")

# Scrapes of the web role in place of exporters. Names that begin with `snmp_` are those of
# snmp_exporter, for the same things.
scrapes = Counter("poller_scrapes", "Answers to /snmp and /probe, by path.", "path", "answer")
scrape_seconds = Histogram(
    "poller_scrape_seconds",
    "Scrapes that were not answered from memory at once, by path.",
    "path",
    edges_s=_SCRAPE_EDGES_S,
)
scrape_config_valid = Gauge(
    "poller_scrape_config_last_reload_successful", "Whether the last reload could read all files."
)
snmp_collection_seconds = Histogram(
    "snmp_collection_duration_seconds",
    "Duration of the polls of scrapes, by module.",
    "module",
    edges_s=_SCRAPE_EDGES_S,
)
snmp_request_errors = Counter("snmp_request_errors", "Scrapes of /snmp that were refused.")
snmp_requests_in_flight = Gauge(
    "snmp_request_in_flight", "Scrapes of /snmp that wait for their answer."
)
snmp_packets = Counter("snmp_packets", "SNMP packets that polls of scrapes sent, with retries.")
snmp_packet_retries = Counter("snmp_packet_retries", "SNMP packets that polls of scrapes repeated.")

# Schedulers.
tick_seconds = Histogram("poller_tick_seconds", "Ticks of the leader.", edges_s=CALL_EDGES_S)
tick_failures = Counter("poller_tick_failures", "Ticks that failed.")
claimed_targets = Counter("poller_claimed_targets", "Targets that the leader claimed.")
published_batches = Counter(
    "poller_published_batches", "Batches that the leader published.", "priority"
)
reconcile_seconds = Histogram(
    "poller_reconcile_seconds",
    "Passes that bring the board in step with the inventory.",
    edges_s=_WORK_EDGES_S,
)
reconcile_errors = Counter(
    "poller_reconcile_errors", "Failures of the leader's work with SQL, by kind.", "kind"
)
leases_reaped = Counter(
    "poller_leases_reaped", "Leases that ran out and were closed by the leader.", "state"
)
leadership = Counter("poller_leadership", "Changes of this scheduler's leadership.", "change")
notifications = Counter(
    "poller_notifications",
    "Attempts to send a notice, by receiver and result.",
    "receiver",
    "result",
)
notification_seconds = Histogram(
    "poller_notification_seconds",
    "Attempts to send a notice, by receiver.",
    "receiver",
    edges_s=_SCRAPE_EDGES_S,
)

# Every process.
process_info = Gauge("poller_process_info", "1, with role and version.", "version")
process_start = Gauge("poller_process_start_timestamp_seconds", "When the process started.")
process_cpu = Counter("poller_process_cpu_seconds", "CPU time of the process.")
process_memory = Gauge("poller_process_memory_bytes", "Resident memory of the process.")
process_files = Gauge("poller_process_open_files", "Open file descriptors of the process.")
process_threads = Gauge("poller_process_threads", "Threads of the process.")
process_seen = Gauge(
    "poller_process_seen_timestamp_seconds", "When the process wrote these numbers."
)

#: In the order of exposition.
INSTRUMENTS: tuple[Instrument, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Instrument)
)

#: Values of labels that a counter has from the start: the first failure is then a rise from 0.
_FROM_ZERO: dict[Counter, tuple[tuple[str, ...], ...]] = {
    leases: (("taken",), ("refused",), ("lost",), ("handed_back",)),
    credential_cache: (("hit",), ("miss",)),
    loop_stalls: ((),),
}
_FROM_ZERO_IN_BEAT: dict[Counter, tuple[tuple[str, ...], ...]] = {
    tick_failures: ((),),
    claimed_targets: ((),),
    leases_reaped: (("started",), ("unstarted",)),
    leadership: (("taken",), ("lost",), ("handed_over",)),
}
#: The answers to scrapes: from the last poll of a target, from a poll of the scrape's own; a device
#: that gave nothing, a scrape that poller refused, and one that poller could not serve.
ANSWERS = ("last_poll", "poll", "failed", "refused", "unavailable")
_FROM_ZERO_IN_WEB: dict[Counter, tuple[tuple[str, ...], ...]] = {
    scrapes: tuple((path, answer) for path in ("/snmp", "/probe") for answer in ANSWERS),
    snmp_request_errors: ((),),
    snmp_packets: ((),),
    snmp_packet_retries: ((),),
}
_FROM_ZERO_BY_ROLE = {
    "worker": _FROM_ZERO,
    "beat": _FROM_ZERO_IN_BEAT,
    "web": _FROM_ZERO_IN_WEB,
}


def begin(role: str) -> None:
    """Give the counters of a role their first value."""
    for counter, rows in _FROM_ZERO_BY_ROLE.get(role, {}).items():
        for labels in rows:
            counter.add(*labels, by=0)


def _forget_parent() -> None:
    for instrument in INSTRUMENTS:
        instrument.clear()


os.register_at_fork(after_in_child=_forget_parent)
