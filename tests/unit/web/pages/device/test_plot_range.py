"""The range of a page of plots: names, instants, zoom and pan by links."""

from __future__ import annotations

import pytest

from poller import errors
from poller.web.pages.device import plot_range
from poller.web.pages.device.page_links import PageLinks

HOUR = 3_600_000
NOW = 1_000 * 86_400_000


def test_a_page_shows_the_last_day_unless_its_address_says_otherwise() -> None:
    """A name is kept in the links, so that the page follows the clock."""
    shown = plot_range.parse("", None, None, NOW)
    assert (shown.end_ms, shown.length_ms, shown.name) == (NOW, 24 * HOUR, "24h")
    assert shown.parameters() == {"range": "24h"}


def test_two_instants_are_a_range_that_stays() -> None:
    """A link to a fault shows the same tomorrow."""
    shown = plot_range.parse("", NOW - 5 * HOUR, NOW - 4 * HOUR, NOW)
    assert shown.parameters() == {"from": str(NOW - 5 * HOUR), "until": str(NOW - 4 * HOUR)}


@pytest.mark.parametrize(
    ("name", "since", "until", "words"),
    [
        ("9h", None, None, 'range: "9h" is none of the ranges'),
        ("", 5, None, "from, until: give both"),
        ("", 9, 5, "until: the range is empty"),
    ],
)
def test_a_wrong_range_is_refused_by_its_field(
    name: str, since: int | None, until: int | None, words: str
) -> None:
    """Nothing is replaced by a default."""
    with pytest.raises(errors.InvalidInput) as refused:
        plot_range.parse(name, since, until, NOW)
    assert words in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("length_ms", "minutes"),
    [(24 * HOUR, 5), (7 * 24 * HOUR, 30), (30 * 24 * HOUR, 120), (730 * 24 * HOUR, 2880)],
)
def test_the_step_gives_as_many_points_as_can_be_seen(length_ms: int, minutes: int) -> None:
    """Two years have as many points as a day."""
    assert plot_range.step(length_ms) == minutes * 60_000
    assert length_ms / plot_range.step(length_ms) <= plot_range.POINTS


def test_a_short_range_shows_every_poll() -> None:
    """A step shorter than the interval would make holes."""
    assert plot_range.named("1h", NOW).asked(60_000).step_ms is None
    assert plot_range.named("24h", NOW).asked(60_000).step_ms == 300_000


def test_links_zoom_and_pan_without_scripts() -> None:
    """A range that ends now zooms towards now and cannot go later."""
    titles = {link.title: link for link in plot_range.moves(plot_range.named("24h", NOW), NOW)}
    assert set(titles) == {"◀ earlier", "zoom in", "zoom out"}
    inner = titles["zoom in"].parameters
    assert int(inner["until"]) == NOW
    assert int(inner["from"]) == NOW - 12 * HOUR
    past = plot_range.parse("", NOW - 20 * HOUR, NOW - 10 * HOUR, NOW)
    moved = {link.title: link.parameters for link in plot_range.moves(past, NOW)}
    assert moved["later ▶"] == {"from": str(NOW - 15 * HOUR), "until": str(NOW - 5 * HOUR)}


def test_a_range_never_ends_after_now() -> None:
    """The future has no values; the length stays."""
    shown = plot_range.clipped(NOW - HOUR, NOW + HOUR, NOW)
    assert (shown.start_ms, shown.end_ms) == (NOW - 2 * HOUR, NOW)


def test_pages_of_rows_keep_range_and_search() -> None:
    """The state of a view is its address."""
    links = PageLinks(plot_range.named("7d", NOW), NOW, [("search", "eth")])
    assert [link.url for link in links.pages(50, 50, 120)] == [
        "?search=eth&range=7d",
        "?search=eth&range=7d&after=100",
    ]
