"""The series of a poll in a store outside: which are sent, and with which labels."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.sinks import outside_series
from poller.sinks.outside_series import SeriesMapper, SeriesOptions
from poller.testing.sink_conformance import TARGET

ROW_1 = (("ifDescr", "eth0"), ("ifIndex", "1"))
ROW_2 = (("ifDescr", "lo"), ("ifIndex", "2"))
SHAPE = SeriesSet(
    (
        Series("sysUpTime", (), Kind.GAUGE),
        Series("ifInOctets", ROW_1, Kind.COUNTER, 32),
        Series("ifInOctets", ROW_2, Kind.COUNTER, 32),
        Series("if speed", ROW_1, Kind.GAUGE),
    )
)


def sent(**options: Any) -> list[str]:
    names = {"target": "", "site": "", "collector": "", "device": "", "tag": "", "tag_prefix": ""}
    mapper = SeriesMapper(SeriesOptions(**options, label_names=names), "prom")
    mapped = mapper.outside(TARGET, SHAPE)
    return [outside_series.series_text(series) for series in mapped.series]


def test_all_series_are_sent_with_valid_names() -> None:
    """Without options nothing is left out, and the name of a metric is made valid."""
    assert sent() == [
        "sysUpTime{}",
        'ifInOctets{ifDescr="eth0",ifIndex="1"}',
        'ifInOctets{ifDescr="lo",ifIndex="2"}',
        'if_speed{ifDescr="eth0",ifIndex="1"}',
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"include_metrics": ["if.*"], "exclude_metrics": ["if speed"]}, [1, 2]),
        ({"include_metrics": ["sysUp"]}, []),
        ({"include_metrics": ["sysUp|sysUpTime", "x"]}, [0]),
        ({"exclude_labels": {"ifDescr": "lo|Null.*"}}, [0, 1, 3]),
        ({"include_labels": {"ifDescr": "eth.*"}}, [1, 3]),
        ({"include_labels": {"ifDescr": "eth.*|"}}, [0, 1, 3]),
    ],
)
def test_patterns_choose_series(options: dict[str, Any], expected: list[int]) -> None:
    """A pattern matches a whole name or text, and a missing label is empty."""
    everything = sent()
    assert sent(**options) == [everything[index] for index in expected]


def test_a_dropped_label_can_double_a_series() -> None:
    """Of two series that are one in the store, the first is sent and the other is named."""
    mapper = SeriesMapper(SeriesOptions(drop_labels=["if.*"]), "prom")
    mapped = mapper.outside(TARGET, SHAPE)
    assert [series.column for series in mapped.series] == [0, 1, 3]
    assert [series.column for series in mapped.doubled] == [2]


def test_a_collision_is_logged_once() -> None:
    """A label of the series that gives way to one of the target is said once per process."""
    shape = SeriesSet((Series("up", (("device", "x"),), Kind.GAUGE),))
    mapper = SeriesMapper(SeriesOptions(), "prom")
    with capture_logs() as lines:
        for _ in range(2):
            mapped = mapper.outside(TARGET, shape)
    assert ("exported_device", "x") in mapped.series[0].labels
    assert [line["event"] for line in lines] == ["label_renamed"]


def test_a_bad_pattern_is_refused() -> None:
    """A pattern that is no expression is named when the options are checked."""
    with pytest.raises(ValidationError, match=r'"\(" is no regular expression'):
        SeriesOptions(exclude_labels={"a": "("})
