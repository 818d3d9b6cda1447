"""The wall: every site has a tile, trouble is larger, and an unknown state is not called well."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet

from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import SiteSummary
from poller.presentation.health import Stores
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.api import snapshot
from poller.web.api.snapshot import FleetNumbers, Snapshot
from poller.web.pages.fleet import wall_page

DARK = {"far": fleet.NOW_MS - 620_000}


def seen(number: int, failing: int = 3, is_complete: bool = True) -> Snapshot:
    """A fleet with a dark site, some failing sites, and well ones."""
    sites = [SiteSummary("far", 9, 9)]
    sites += [SiteSummary(f"s{n}", 40, n + 1 if n < failing else 0) for n in range(number - 1)]
    picture = FleetPicture(
        sites=failing_causes.worst_first(sites), is_complete=is_complete, as_of_ms=fleet.NOW_MS
    )
    overview = dataclasses.replace(fleet.FAILING, dark=DARK)
    return snapshot.taken(overview, Stores(), FleetNumbers(picture))


def test_trouble_comes_first_and_is_larger() -> None:
    """A dark site says since when, a failing one how many devices fail."""
    view = wall_page.build_view(seen(12))
    first, second, *_, last = view.tiles
    assert (first.name, first.state, first.count, first.span) == ("far", "dark", "for 10 m", 2)
    assert (second.state, second.count, second.span) == ("failing", "3 of 40", 2)
    assert (last.state, last.count, last.span) == ("ok", "40", 1)
    assert (view.columns, view.names, view.more) == (4, "short", "")


def test_many_sites_fit_and_the_others_are_counted() -> None:
    """Beyond two hundred only the number is shown; a few in trouble stand out even more."""
    view = wall_page.build_view(seen(320))
    assert len(view.tiles) == 200
    assert view.more == "120 more, all less troubled"
    assert (view.tiles[0].span, view.tiles[-1].span) == (3, 1)
    assert view.columns == 12
    crowded = wall_page.build_view(seen(200, failing=90))
    assert {tile.span for tile in crowded.tiles} == {1}


def test_one_site_has_the_whole_wall() -> None:
    """A grid has at least one column."""
    assert wall_page.columns(1) == 1
    assert wall_page.columns(0) == 1


def test_a_state_that_is_not_known_is_not_called_well() -> None:
    """Too many failing targets are not grouped by site; a dark site is known all the same."""
    view = wall_page.build_view(seen(5, failing=0, is_complete=False))
    assert view.notice == "Too many targets fail to say at which sites."
    assert [tile.state for tile in view.tiles] == ["dark", *["not known"] * 4]


def test_without_sites_the_wall_says_why() -> None:
    """No site at all differs from sites that could not be read."""
    nothing = FleetPicture(as_of_ms=fleet.NOW_MS)
    empty = snapshot.taken(fleet.HEALTHY, Stores(), FleetNumbers(nothing))
    assert wall_page.build_view(empty).notice.startswith("No site yet")
    unread = snapshot.taken(fleet.HEALTHY, Stores(), FleetNumbers())
    assert wall_page.build_view(unread).notice == "The sites are not known yet, or SQL is away."
