"""Prometheus text, read back by Prometheus' own parser."""

from __future__ import annotations

import math

from prometheus_client.parser import text_string_to_metric_families

from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series, SeriesSet
from poller.presentation.exposition import prometheus_text

NASTY = 'a "quoted" \\ back\nslash {x="1"} ž'


def text(*readings: Reading, help_texts: dict[str, str] | None = None) -> str:
    series = SeriesSet(
        tuple(Series(r.name, tuple(sorted(r.labels.items())), r.kind) for r in readings)
    )
    return (
        "\n".join(
            prometheus_text.lines(ReadingSet(series, [r.value for r in readings]), help_texts or {})
        )
        + "\n"
    )


def test_what_is_written_is_read_back() -> None:
    """Names, labels with every nasty character, values, types and help."""
    written = text(
        Reading("b_total", 5, {"l": NASTY}, Kind.COUNTER),
        Reading("a", 1.5, {}, Kind.GAUGE),
        Reading("b_total", 6, {"l": "x"}, Kind.COUNTER),
        Reading("c_info", 1, {"v": "7"}, Kind.INFO),
        help_texts={"a": "first line\nsecond \\ line"},
    )
    families = {family.name: family for family in text_string_to_metric_families(written)}
    assert [(s.labels, s.value) for s in families["b"].samples] == [
        ({"l": NASTY}, 5),
        ({"l": "x"}, 6),
    ]
    assert (families["b"].type, families["a"].type, families["c_info"].type) == (
        "counter",
        "gauge",
        "gauge",
    )
    assert families["a"].documentation == "first line\nsecond \\ line"
    assert families["a"].samples[0].value == 1.5


def test_the_samples_of_a_metric_stand_together_under_one_type_line() -> None:
    written = text(Reading("a", 1, {"x": "1"}), Reading("b", 1), Reading("a", 2, {"x": "2"}))
    assert written == '# TYPE a gauge\na{x="1"} 1\na{x="2"} 2\n# TYPE b gauge\nb 1\n'


def test_numbers() -> None:
    """Whole numbers exactly; the three that are no numbers by their names."""
    values = [0, -1, 2**53 - 1, 0.1, 1e300, math.inf, -math.inf, math.nan, 3.0]
    written = text(*(Reading("a", value, {"i": str(at)}) for at, value in enumerate(values)))
    got = [line.rpartition(" ")[2] for line in written.splitlines()[1:]]
    assert got == ["0", "-1", "9007199254740991", "0.1", "1e+300", "+Inf", "-Inf", "NaN", "3"]


def test_big_counters_wrap_as_the_exporter_wraps_them() -> None:
    """19007199254740992 is the exporter's own example. Gauges wrap, too."""
    assert "a 992800745259008\n" in text(Reading("a", 19007199254740992, {}, Kind.COUNTER))
    assert "a 1\n" in text(Reading("a", 2**60 + 1, {}, Kind.COUNTER))
    assert "a 1\n" in text(Reading("a", 2**60 + 1, {}, Kind.GAUGE))
