"""The text of a shape equals the text that is written line by line."""

from __future__ import annotations

import math
from array import array

import pytest

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.presentation.exposition import prometheus_text, scrape_metrics
from poller.presentation.exposition.scrape_metrics import ScrapeCost
from poller.presentation.exposition.shape_text import ShapeText, ShapeTexts
from tests.integration.exporters import differences, exposed

HELP = {"b": 'a "help" of 100 %s\nand more', "a": "%d"}
READINGS = [
    Reading("b", 2.0, {"x": "2"}, Kind.COUNTER),
    Reading("a", 0.5, {"x": '50 %\\ "q"\n'}, Kind.INFO),
    Reading("b", 1.0, {"x": "1"}, Kind.COUNTER),
]


def made(readings: list[Reading]) -> ReadingSet:
    found = ReadingSet.of(readings)
    return ReadingSet(found.series, array("d", found.values))


@pytest.mark.parametrize("more", [[], [Reading("c", math.nan)], [Reading("c", -math.inf)]])
def test_a_shape_has_the_text_of_its_lines(more: list[Reading]) -> None:
    """Percent signs, quotes and line ends in labels and help texts stay what they are."""
    readings = made([*READINGS, *more])
    text = ShapeText(readings.series, HELP).text(readings.values)
    lines = "".join(f"{line}\n" for line in prometheus_text.lines(readings, HELP))
    assert differences(exposed(text), exposed(lines)) == {}
    assert [line for line in text.splitlines() if line[0] == "#"] == [
        line for line in lines.splitlines() if line[0] == "#"
    ]


def test_a_large_counter_is_written_modulo_2_to_53_and_a_gauge_is_not() -> None:
    """snmp_exporter does the same for Counter64."""
    readings = made([Reading("c_total", 2.0**53 + 4, {}, Kind.COUNTER), Reading("g", 2.0**60)])
    text = ShapeText(readings.series, {}).text(readings.values)
    assert exposed(text).samples == {("c_total", frozenset()): 4.0, ("g", frozenset()): 2.0**60}


def test_only_the_wanted_metrics_are_shown() -> None:
    """A scrape of one module of two gets its metrics only."""
    readings = made(READINGS)
    shape = ShapeTexts().get(readings.series, HELP, frozenset({"a"}))
    assert shape.samples == 1
    assert [line.partition("{")[0] for line in shape.text(readings.values).splitlines()][-1] == "a"
    assert ShapeText(readings.series, HELP, ()).text(readings.values) == ""


def test_texts_of_shapes_are_bounded() -> None:
    """The least recently used one gives way."""
    texts = ShapeTexts(most=1)
    first = made([Reading("a", 1.0)]).series
    kept = texts.get(first, HELP)
    assert texts.get(first, HELP) is kept
    texts.get(made([Reading("b", 1.0)]).series, HELP)
    assert texts.get(first, HELP) is not kept


def test_one_read_counts_its_packets_once_for_all_modules() -> None:
    """The sum over the modules is the number of packets."""
    text = scrape_metrics.of_snmp(("if_mib", "system"), ScrapeCost(0.25, 154, 5, 1))
    values = {
        line.partition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[0] != "#"
    }
    assert values['snmp_scrape_packets_sent{module="if_mib"}'] == 5
    assert values['snmp_scrape_packets_sent{module="system"}'] == 0
    assert values['snmp_scrape_duration_seconds{module="system"}'] == 0.25
    assert values['snmp_scrape_pdus_returned{module="if_mib"}'] == 154


def test_failed_tables_have_a_sample_each() -> None:
    """A whole poll has none."""
    assert 'poller_partial{module="if_mib",table="1.3"} 1' in scrape_metrics.partial(
        [("if_mib", "1.3")]
    )
    assert scrape_metrics.partial([]) == ""
