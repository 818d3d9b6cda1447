"""Sinks as texts: the order of trouble, what is not known, and what was lost."""

from __future__ import annotations

from dataclasses import replace

import web_overviews as fleet

from poller.domain.record.overview import Overview
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.presentation.cluster import sinks_json
from poller.service.cluster.sink_listing import SinkListing
from poller.web.pages.cluster import sinks_page
from poller.web.pages.cluster.sinks_page import SinkRow, SinksView

NOW_MS = fleet.NOW_MS


def view(*reports: SinkReport, used: tuple[str, ...] = (), unusable: str = "") -> SinksView:
    """The page of a fleet whose first worker has these reports."""
    overview = with_sinks(*reports)
    kinds = dict.fromkeys((*used, "spare"), "stream")
    items = sinks_json.items(overview, used, kinds)
    listing = SinkListing(items, (), (), [unusable] if unusable else [])
    return sinks_page.build_view(listing, overview, NOW_MS)


def with_sinks(*reports: SinkReport) -> Overview:
    first, second, *others = fleet.HEALTHY.workers
    well = [SinkReport(each.name, each.kind) for each in reports]
    workers = [replace(first, sinks=reports), replace(second, sinks=well), *others]
    return replace(fleet.HEALTHY, workers=workers)


def row(made: SinksView, name: str) -> SinkRow:
    return next(each for each in made.rows if each.name == name)


def test_sinks_in_trouble_come_first() -> None:
    """By how bad it is; one that nothing uses is last."""
    made = view(
        SinkReport("well", "sql"),
        SinkReport("slow", "sql", SinkState.BEHIND, spooled_polls=1, oldest_ms=NOW_MS - 5_000),
        SinkReport("gone", "sql", SinkState.DOWN, error="no route."),
        SinkReport("picky", "sql", SinkState.REFUSING, left_out=3, left_out_reason="too old"),
        used=("missing",),
    )
    names = [each.name for each in made.rows]
    assert names == ["gone", "picky", "slow", "missing", "well", "spare"]
    assert [text for _, text in made.troubles] == [
        "Sink gone is down: no route; 0 polls wait on disk.",
        "Sink picky refuses samples: too old.",
        "Sink slow is behind: 1 poll waits on disk, the oldest for 5 s.",
    ]
    assert row(made, "slow").note == "in 1 of 2 workers"
    assert row(made, "missing").note == "no running worker has it"
    assert ("ok", "1 ok") in made.counts


def test_what_was_lost_has_its_reasons() -> None:
    """Polls by reason, and samples with the newest one."""
    lost = SinkReport(
        "prom", "x", dropped={"full": 60, "disk": 4}, left_out=1, left_out_reason="old: up{}"
    )
    found = row(view(lost), "prom")
    assert found.lost == "64 polls, 1 sample"
    assert found.lost_why == "full 60, disk 4; old: up{}"


def test_the_last_success_is_an_age_never_or_not_known() -> None:
    """A worker of an earlier release does not tell it."""
    made = view(
        SinkReport("a", "x", polls=5, stored_ms=NOW_MS - 4_000),
        SinkReport("b", "x"),
        SinkReport("c", "x", polls=5),
    )
    assert [row(made, name).stored for name in "abc"] == ["4 s ago", "never", "–"]
    assert row(made, "spare").polls == "–"


def test_settings_that_no_worker_takes_are_said_first() -> None:
    """A worker with them does not start."""
    made = view(SinkReport("gone", "x", SinkState.DOWN), unusable="[sink.prom] url: missing")
    assert made.troubles[0] == (
        "failing",
        "No worker will start with these settings: [sink.prom] url: missing",
    )
