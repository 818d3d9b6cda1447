"""Every measured figure that sizes are computed from, with its source: the one place to edit.

`docs/sizing.md` shows the same figures; a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured number. `source` is the section of the benchmarks, or the way it was measured."""

    name: str
    value: float
    unit: str
    source: str


#: CPU of the whole platform: beat, workers, server and database of one installation.
POLL_MS = Figure("CPU of a poll, besides its samples", 0.52, "ms", "`cost`, `fleet`")
SAMPLE_US = Figure("CPU of a sample", 1.1, "us", "`cost`, `fleet`")
HISTORY_SAMPLE_US = Figure("CPU of history, a sample", 0.3, "us", "`history`: 50 us a poll at most")
SINK_SAMPLE_US = Figure("CPU of a further sink, a sample", 0.8, "us", "`sinks`: remote_write")

BEAT_MB = Figure("memory of beat", 105, "MB", "`growth`")
SERVER_MB = Figure("memory of the server", 7, "MB", "`growth`")
WORKER_MB = Figure("memory of a worker without targets", 120, "MB", "`growth`")
LEADER_TARGET_BYTES = Figure("memory of beat, a target", 510, "B", "`growth`")
SERVER_TARGET_BYTES = Figure("memory of the server, a target", 262, "B", "`scheduler`")
WORKER_SAMPLE_BYTES = Figure(
    "memory of a worker, a sample of a target", 50, "B", "`growth`: 7.7 KB for 154 samples"
)

ROW_BYTES = Figure("a row of history besides its data", 100, "B", "`history`")
FRESH_VALUE_BYTES = Figure("a fresh sample", 8, "B", "its form")
BLOCK_VALUE_BYTES = Figure("a sample in a block", 0.6, "B", "`history`")
FIVE_MINUTES_VALUE_BYTES = Figure(
    "a series and day of 5-minute roll-ups", 460, "B", "`history`: a simulated day of if_mib"
)
HOUR_VALUE_BYTES = Figure(
    "a series and day of hourly roll-ups", 53, "B", "`history`: a simulated day of if_mib"
)
RUN_BYTES = Figure("a row of the ledger", 112, "B", "40,000 rows in SQLite, with indexes")

DOWN_SAMPLE_BYTES = Figure(
    "response, a sample", 22, "B", "a repeat poll of 48 ports over a counting relay, with headers"
)
UP_SAMPLE_BYTES = Figure("requests, a sample", 2, "B", "the same poll: 16 requests of 721 samples")

#: What an interface is assumed to have: if_mib of 48 ports has 1,826 samples.
INTERFACE_SAMPLES = Figure("samples of an interface", 38, "", "if_mib of a switch of 48 ports")

ALL = (
    POLL_MS,
    SAMPLE_US,
    HISTORY_SAMPLE_US,
    SINK_SAMPLE_US,
    BEAT_MB,
    SERVER_MB,
    WORKER_MB,
    LEADER_TARGET_BYTES,
    SERVER_TARGET_BYTES,
    WORKER_SAMPLE_BYTES,
    ROW_BYTES,
    FRESH_VALUE_BYTES,
    BLOCK_VALUE_BYTES,
    FIVE_MINUTES_VALUE_BYTES,
    HOUR_VALUE_BYTES,
    RUN_BYTES,
    DOWN_SAMPLE_BYTES,
    UP_SAMPLE_BYTES,
    INTERFACE_SAMPLES,
)
