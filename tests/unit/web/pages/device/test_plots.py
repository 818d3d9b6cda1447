"""Plots: units, axes, gaps and marks, as pictures of the server and as data for the script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import web_lines
from web_lines import MINUTE

from poller.domain.rollups.sample_columns import Group
from poller.domain.series.device_interfaces import Counted, Interface
from poller.web.pages.device import plot_figures, plots, range_plot
from poller.web.pages.device.plots import Axis, Plot, Window

HOUR = Window(0, 60 * MINUTE)


def port(speed: float | None = 1e6) -> Interface:
    metrics = {Counted.IN_OCTETS: "ifHCInOctets", Counted.OUT_OCTETS: "ifHCOutOctets"}
    return Interface((("ifName", "eth0"),), "eth0", bits_per_s=speed, counters=metrics)


def traffic(*values: float | None, window: Window = HOUR) -> Plot:
    found = web_lines.line(values)
    return plots.traffic(port(), {Counted.IN_OCTETS: found}, window)


def paths(svg: str, css: str) -> list[str]:
    root = ET.fromstring(svg)
    return [each.get("d") or "" for each in root.iter() if css in (each.get("class") or "").split()]


def test_octets_are_shown_as_bits_in_one_plot_for_both_directions() -> None:
    """In and out have one axis, so they can be compared; the speed is a dashed line."""
    lines = {
        Counted.IN_OCTETS: web_lines.line([1e5] * 60),
        Counted.OUT_OCTETS: web_lines.line([2e4] * 60, "ifHCOutOctets"),
    }
    found = {each.id: each for each in plots.of_interface(port(), lines, HOUR)}
    assert set(found) == {"traffic", "utilisation"}
    shown = plot_figures.figure(found["traffic"])
    assert [(row.name, row.last) for row in shown.legend] == [
        ("in", "800 kbit/s"),
        ("out", "160 kbit/s"),
    ]
    assert shown.limit == "speed 1 Mbit/s"
    assert paths(shown.svg, "limit")
    used = plot_figures.figure(found["utilisation"])
    assert used.legend[0].p95 == "80 %"
    assert list(used.axis) == ["200 %", "100 %", "0 %"]  # the band reaches twice the mean


def test_missing_points_break_the_line_and_are_shaded() -> None:
    """A missing sample is never a line."""
    plot = traffic(*[1.0] * 20, *[None] * 20, *[1.0] * 20)
    svg = range_plot.svg(plot, "")
    [line] = paths(svg, "line")
    assert line.count("M") == 2
    [gap] = range_plot.gaps(plot)
    assert gap.end_ms - gap.start_ms == pytest.approx(20 * MINUTE, abs=2 * MINUTE)
    assert "no values for 20 m 0 s" in plot_figures.notes(plot) + plot_figures.notes(plot)


def test_a_range_that_begins_before_the_first_poll_is_shaded_there() -> None:
    """Time before the device was added is unknown, not zero."""
    late = web_lines.line([1.0] * 10, start_ms=50 * MINUTE)
    plot = plots.traffic(port(), {Counted.IN_OCTETS: late}, HOUR)
    [gap] = range_plot.gaps(plot)
    assert (gap.start_ms, gap.end_ms) == (0, 49 * MINUTE)


def test_a_lone_point_is_a_dot() -> None:
    """Two gaps with one poll between them show that poll."""
    plot = traffic(*[None] * 20, 5.0, *[None] * 20)
    [line] = paths(range_plot.svg(plot, ""), "line")
    assert re.fullmatch(r"M[\d.]+ [\d.]+h0", line)


def test_a_small_picture_is_small_and_keeps_every_spike() -> None:
    """A day of polls in a row of a table: some bytes, the one high poll, and the gap."""
    values: list[float | None] = [1.0] * 1440
    values[700] = 100.0
    values[200:300] = [None] * 100
    found = web_lines.line(values, spread=1.0)
    plot = plots.traffic(port(None), {Counted.IN_OCTETS: found}, Window(0, 1440 * MINUTE))
    svg = range_plot.small(plot, "")
    assert len(svg) < 1_500
    assert paths(svg, "line")[0].count("M") == 2
    heights = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", paths(svg, "line")[0])]
    assert min(heights) == 0
    assert ET.fromstring(svg).find("rect[@class='gap']") is not None


def test_a_reset_is_an_upright_tick_and_is_told() -> None:
    """The script and the screen reader get it, too."""
    found = web_lines.line([1.0] * 60, reset=30)
    plot = plots.traffic(port(), {Counted.IN_OCTETS: found}, HOUR)
    assert len(paths(range_plot.svg(plot, ""), "reset")) == 1
    assert plot_figures.document(plot)["marks"] == [[30 * MINUTE, "reset"]]
    assert "1 counter reset" in plot_figures.sentence(plot)


def test_the_data_of_the_script_has_a_null_after_each_stretch() -> None:
    """So a library that joins points cannot join them over a gap."""
    found = plot_figures.document(traffic(1.0, 2.0, None, 3.0))
    assert found["at"] == [0, MINUTE, MINUTE + 1, 3 * MINUTE, 3 * MINUTE + 1]
    [line] = found["lines"]  # type: ignore[misc, attr-defined]
    assert line["value"] == [8.0, 16.0, None, 24.0, None]
    assert line["high"] == [16.0, 32.0, None, 48.0, None]


def test_a_line_is_not_broken_where_only_another_line_has_a_point() -> None:
    """Lines of one plot share their instants; null would be a gap."""
    lines = {
        Counted.IN_OCTETS: web_lines.line([1.0, 1.0]),
        Counted.OUT_OCTETS: web_lines.line([1.0], "ifHCOutOctets"),
    }
    found = plot_figures.document(plots.traffic(port(), lines, HOUR))
    receives, sends = found["lines"]  # type: ignore[misc]
    assert receives["value"] == [8.0, "", 8.0, None]
    assert sends["value"] == [8.0, None, "", ""]


def test_buckets_are_drawn_at_their_middle() -> None:
    """A bucket of an hour stands for the hour, not for its first instant."""
    step = 60 * MINUTE
    window = Window(0, 2 * step, step)
    found = web_lines.line([1.0, 3.0], step_ms=step)
    plot = plots.traffic(port(), {Counted.IN_OCTETS: found}, window)
    assert plot_figures.document(plot)["at"] == [step // 2, 3 * step // 2, 3 * step // 2 + 1]
    assert range_plot.gaps(plot) == []


def test_a_temperature_does_not_start_at_zero_and_a_rate_does() -> None:
    """A degree must be seen; a rate from 0 shows its size."""
    metric = "routeros_system_cpu_temperature"
    warm = web_lines.line([41.0, 43.0], metric, group=Group.GAUGE, spread=1.0)
    plot = plots.of_line(warm, HOUR)
    bottom, top = plot.span
    assert plot.suffix == "°C"
    assert 35 < bottom <= 41
    assert traffic(1e6, 1.1e6).span[0] == 0
    assert 43 <= top < 50


@pytest.mark.parametrize(
    ("value", "axis"),
    [
        (1500.0, ["1,600", "1,500", "1,400"]),
        (24.7, ["26", "24.5", "23"]),
        (0.031, ["0.032", "0.031", "0.03"]),
        (1.0, ["2", "1", "0"]),
        (0.0, ["1", "0", "-1"]),
    ],
)
def test_a_line_that_does_not_change_has_an_axis_around_it(value: float, axis: list[str]) -> None:
    """Its three numbers differ, as long as the line is high or as small as it may be."""
    found = web_lines.line([value] * 60, "mtu", group=Group.GAUGE, spread=1.0)
    plot = plots.of_line(found, HOUR)
    assert list(plot_figures.figure(plot).axis) == axis


def test_a_plot_of_what_an_interface_counts_is_there_without_any_value() -> None:
    """A range before the first poll is one gap, and the page can be moved back from it."""
    empty = plots.of_interface(port(), {}, HOUR)
    assert [each.id for each in empty] == ["traffic", "utilisation"]
    shown = plot_figures.figure(empty[0])
    assert shown.legend == []
    assert "no values for 1 h 0 m" in shown.notes
    assert plot_figures.document(empty[0])["gaps"] == [[HOUR.start_ms, HOUR.end_ms]]


def test_a_state_is_drawn_in_steps() -> None:
    """Between up and down there is nothing."""
    states = web_lines.line([1.0, 2.0, 1.0], "ifOperStatus", group=Group.STATE)
    plot = plots.of_line(states, HOUR)
    assert plot.lines[0].is_stepped
    [line] = paths(range_plot.svg(plot, ""), "line")
    assert len(line.split()) == 2 * 5


def test_the_table_has_every_point_with_its_unit_the_newest_first() -> None:
    """What is shown can be read as text."""
    found = plot_figures.table(traffic(1.0, None, 3.0))
    assert [(row.at, list(row.values), row.verdict) for row in found.rows] == [
        ("1970-01-01T00:02:00Z", ["24 bit/s"], ""),
        ("1970-01-01T00:01:00Z", ["–"], "unknown"),
        ("1970-01-01T00:00:00Z", ["8 bit/s"], ""),
    ]


def test_names_of_devices_are_escaped_in_the_picture() -> None:
    """A label of a device cannot put markup into the page."""
    hostile = web_lines.line([1.0, 2.0], name='"><script>')
    plot = plots.of_line(hostile, HOUR)
    svg = range_plot.svg(plot, plot_figures.sentence(plot))
    assert "<script>" not in svg
    ET.fromstring(svg)


@pytest.mark.parametrize(
    ("axis", "suffix", "value", "text"),
    [
        (Axis.BITS, "", 1.24e9, "1.24 Gbit/s"),
        (Axis.RATE, "", 12.3, "12.3 /s"),
        (Axis.PERCENT, "", 61.0, "61 %"),
        (Axis.SECONDS, "", 0.0123, "12.3 ms"),
        (Axis.BYTES, "", 3.2 * 2**30, "3.2 GiB"),
        (Axis.PLAIN, "°C", 41.5, "41.5 °C"),
        (Axis.PLAIN, "", None, "–"),
    ],
)
def test_values_have_their_unit(axis: Axis, suffix: str, value: float | None, text: str) -> None:
    """Three digits and one unit; `–` is not measured, which is not 0."""
    assert plots.value_text(axis, suffix, value) == text
