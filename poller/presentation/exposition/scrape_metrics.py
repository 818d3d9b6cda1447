"""The metrics about a scrape itself: those of snmp_exporter, and those that only poller has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.presentation.exposition import prometheus_text

AGE = "poller_scrape_age_seconds"
PARTIAL = "poller_partial"
#: The texts of snmp_exporter, and our own.
HELP = {
    "snmp_scrape_walk_duration_seconds": "Time SNMP walk/bulkwalk took.",
    "snmp_scrape_packets_sent": "Packets sent for get, bulkget, and walk; including retries.",
    "snmp_scrape_packets_retried": "Packets retried for get, bulkget, and walk.",
    "snmp_scrape_pdus_returned": "PDUs returned from get, bulkget, and walk.",
    "snmp_scrape_duration_seconds": "Total SNMP time scrape took (walk and processing).",
    AGE: "Time since the poll that this scrape got was answered; 0 for a poll of its own.",
    PARTIAL: "1 for each table that the poll could not read; the other tables are here.",
}
#: By metric: the number it has, and whether that counts once for all modules.
_FIELDS = {
    "snmp_scrape_duration_seconds": ("duration", False),
    "snmp_scrape_packets_retried": ("retried", True),
    "snmp_scrape_packets_sent": ("sent", True),
    "snmp_scrape_pdus_returned": ("samples", True),
    "snmp_scrape_walk_duration_seconds": ("duration", False),
}
_AGE_HEAD = "".join(f"{line}\n" for line in prometheus_text.head(AGE, Kind.GAUGE, HELP))


@dataclass(frozen=True, slots=True)
class ScrapeCost:
    """The effort of a poll. One read serves all modules: its packets count for the first one."""

    duration_s: float
    samples: int
    sent: int = 0
    retried: int = 0


def of_snmp(modules: Sequence[str], cost: ScrapeCost) -> str:
    """Return the metrics of snmp_exporter, which has each of them by module."""
    return _template(tuple(modules) or ("",)) % {
        "duration": cost.duration_s,
        "sent": cost.sent,
        "retried": cost.retried,
        "samples": cost.samples,
    }


@lru_cache(maxsize=1024)
def _template(modules: tuple[str, ...]) -> str:
    """The lines with places for the numbers; the first module has those that are counted."""
    lines = []
    for name, (key, is_counted) in _FIELDS.items():
        lines += [line.replace("%", "%%") for line in prometheus_text.head(name, Kind.GAUGE, HELP)]
        for module in modules:
            series = prometheus_text.series_text(name, (("module", module),)).replace("%", "%%")
            number = "0" if is_counted and module != modules[0] else f"%({key})s"
            lines.append(f"{series} {number}")
    return "".join(f"{line}\n" for line in lines)


def partial(failed: Iterable[tuple[str, str]]) -> str:
    """Return one sample for each table that was not read."""
    readings = [Reading(PARTIAL, 1, {"module": module, "table": table}) for module, table in failed]
    return text(readings, HELP) if readings else ""


def age(seconds: float) -> str:
    """Return the age of the poll."""
    return f"{_AGE_HEAD}{AGE} {seconds:.3f}\n"


def text(readings: Iterable[Reading], help_texts: Mapping[str, str]) -> str:
    """Return readings as lines, each with its end."""
    found = prometheus_text.lines(ReadingSet.of(readings), help_texts)
    return "".join(f"{line}\n" for line in found)
