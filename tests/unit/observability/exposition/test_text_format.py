"""The text format of Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from poller.observability.exposition import text_format
from poller.observability.exposition.text_format import Family


def test_a_family_of_two_processes_is_described_once() -> None:
    one = {"poller_x_total": Family("counter", "X.", ['poller_x_total{process="a"} 1'])}
    two = {"poller_x_total": Family("counter", "X.", ['poller_x_total{process="b"} 2'])}
    text = text_format.render([one, two]).decode()
    assert text.count("# TYPE poller_x_total counter") == 1
    [family] = text_string_to_metric_families(text)
    assert [(sample.labels["process"], sample.value) for sample in family.samples] == [
        ("a", 1),
        ("b", 2),
    ]


def test_rendering_changes_no_snapshot() -> None:
    """A snapshot is rendered again at the next scrape."""
    families = {"poller_x": Family("gauge", "X.", ["poller_x 1"])}
    text_format.render([families, families])
    assert families["poller_x"].lines == ["poller_x 1"]


def test_the_name_of_a_process_may_hold_any_character() -> None:
    from poller.metering import process_metrics

    process_metrics.process_threads.set(3)
    families = text_format.of_process('a"b\\c\nd', "worker")
    text = text_format.render([{"x": families["poller_process_threads"]}]).decode()
    [line] = [line for line in text.splitlines() if not line.startswith("#")]
    assert line == r'poller_process_threads{process="a\"b\\c\nd",role="worker"} 3'
