"""The wall: the sites as tiles that fill the screen, so that trouble is seen from four metres.

The number of columns follows from the number of tiles; the style sheet shares out the height, so
nothing scrolls. A site in trouble has the room of several others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.fleet.failing_causes import SiteSummary
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.web.api.snapshot import Snapshot

#: Tiles of the wall: the names of more sites cannot be read from four metres.
TILES = 200
#: Columns and rows of a tile in trouble: among many small tiles it takes more of them, and many
#: such tiles are smaller, because all must fit.
_SPAN, _LARGE_SPAN = 2, 3
_MOST_LARGE, _MOST_SPANNING = 8, 24
_MANY = 60
#: The widest and the narrowest grid that the style sheet knows.
_FEWEST, _MOST = 1, 12
#: A longer sentence is set in a smaller size.
_LONG_SENTENCE = 160
_SHORT_NAME = 9
_TONES = {"dark": Tone.FAILING, "failing": Tone.LATE, "ok": Tone.OK, "empty": Tone.UNKNOWN}


@dataclass(frozen=True, slots=True)
class WallTile:
    """The texts of a site. `where` selects its devices; `span` is its size in cells."""

    name: str
    where: str
    state: str
    tone: str
    count: str
    span: int


@dataclass(frozen=True, slots=True)
class WallView:
    as_of: str
    tiles: Sequence[WallTile]
    columns: int
    names: str  # short, or long: those need two lines of a flat tile
    more: str  # sites that are not shown; "" for none
    notice: str  # why there is no tile, or why states are not known
    is_long: bool  # the sentence


def build_view(snapshot: Snapshot) -> WallView:
    """Build the view of the first sites, the worst first."""
    now_ms = snapshot.overview.as_of_ms if snapshot.overview else 0
    sites = snapshot.fleet.sites
    shown = sites[:TILES]
    troubled = sum(site.state in ("dark", "failing") for site in shown)
    span = _span(troubled, len(shown))
    tiles = [_tile(site, now_ms, span, snapshot.fleet.is_complete) for site in shown]
    hidden = len(sites) - len(shown)
    return WallView(
        as_of=formatting.instant(now_ms),
        tiles=tiles,
        columns=columns(sum(tile.span**2 for tile in tiles)),
        names="short" if all(len(tile.name) <= _SHORT_NAME for tile in tiles) else "long",
        more=f"{formatting.exact(hidden)} more, all less troubled" if hidden else "",
        notice=_notice(snapshot),
        is_long=len(snapshot.health.text) > _LONG_SENTENCE,
    )


def columns(cells: int) -> int:
    """Return how many columns a grid of so many cells has: few wide ones for many names."""
    wanted = math.ceil(math.sqrt(cells) * 0.8)
    return max(_FEWEST, min(_MOST, wanted))


def _span(troubled: int, tiles: int) -> int:
    """Return how many columns and rows a tile in trouble takes."""
    if tiles > _MANY and troubled <= _MOST_LARGE:
        return _LARGE_SPAN
    return _SPAN if troubled <= _MOST_SPANNING else 1


def _tile(site: SiteSummary, now_ms: int, span: int, is_known: bool) -> WallTile:
    is_troubled = site.state in ("dark", "failing")
    state = site.state if is_known or is_troubled else "not known"
    return WallTile(
        name=site.name or "no site",
        where=target_filter.text(TargetFilter(sites=(site.name,))),
        state=state,
        tone=str(_TONES.get(state, Tone.UNKNOWN)),
        count=_count(site, now_ms),
        span=span if is_troubled else 1,
    )


def _count(site: SiteSummary, now_ms: int) -> str:
    """`for 10 m`, `12 of 40`, `40`"""
    if site.dark_since_ms:
        age = formatting.age(now_ms - site.dark_since_ms).split()
        return f"for {' '.join(age[:2])}"
    devices = formatting.exact(site.devices)
    return f"{formatting.exact(site.failing)} of {devices}" if site.failing else devices


def _notice(snapshot: Snapshot) -> str:
    if not snapshot.fleet.is_complete:
        return "Too many targets fail to say at which sites."
    if snapshot.fleet.sites:
        return ""
    if snapshot.stores.sql_error or not snapshot.fleet.as_of_ms:
        return "The sites are not known yet, or SQL is away."
    return "No site yet: the first device with a site makes it."
