"""Sites as texts, for the table and for the wall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.fleet.failing_causes import SiteSummary
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.web.api.snapshot import Snapshot

#: Sites of the table; the search of devices finds the others.
ROWS = 200
_TONES = {"dark": Tone.FAILING, "failing": Tone.LATE, "ok": Tone.OK, "empty": Tone.UNKNOWN}


@dataclass(frozen=True, slots=True)
class SiteRow:
    """The texts of a site. `where` selects its devices."""

    name: str
    where: str
    state: str
    tone: str
    note: str
    up: str
    failing: str
    devices: str


@dataclass(frozen=True, slots=True)
class SitesView:
    as_of: str
    rows: Sequence[SiteRow]
    more: str  # sites that are not shown; "" for none
    total: str


def build_view(snapshot: Snapshot, limit: int) -> SitesView:
    """Build the view of the first sites, the worst first."""
    now_ms = snapshot.overview.as_of_ms if snapshot.overview else 0
    sites = snapshot.fleet.sites
    hidden = len(sites) - limit
    more = f"{formatting.exact(hidden)} more, all less troubled" if hidden > 0 else ""
    rows = [_row(site, now_ms) for site in sites[:limit]]
    total = formatting.counted(len(sites), "site")
    return SitesView(formatting.instant(now_ms), rows, more, total)


def _row(site: SiteSummary, now_ms: int) -> SiteRow:
    note = ""
    if site.dark_since_ms:
        note = f"for {formatting.age(now_ms - site.dark_since_ms)}"
    return SiteRow(
        name=site.name or "no site",
        where=target_filter.text(TargetFilter(sites=(site.name,))),
        state=site.state,
        tone=str(_TONES[site.state]),
        note=note,
        up=formatting.exact(max(0, site.devices - site.failing)),
        failing=formatting.exact(site.failing),
        devices=formatting.exact(site.devices),
    )
