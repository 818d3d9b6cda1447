"""The facets of the list of devices as links, each of which adds or removes one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.fleet import search_words
from poller.domain.fleet.failing_causes import SiteSummary
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet.facets import Facets
from poller.service.selection.match_count import Count
from poller.web.pages.fleet.devices_query import DevicesQuery

#: Values of one facet, the largest first; the others are found by typing.
MOST = 12


@dataclass(frozen=True, slots=True)
class FacetLink:
    title: str
    number: str
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class FacetGroup:
    title: str
    unit: str  # what the numbers count
    links: Sequence[FacetLink]


@dataclass(frozen=True, slots=True)
class FacetsView:
    as_of: str
    matches: str
    groups: Sequence[FacetGroup]


def build(
    found: Facets, count: Count, query: DevicesQuery, wanted: TargetFilter, now_ms: int
) -> FacetsView:
    """Build the facets for the present filter."""
    sites = {site.name: site.devices for site in _busiest(found)}
    groups = (
        FacetGroup("State", "targets", _links(query, wanted, "states", found.states)),
        FacetGroup("Error code", "targets", _links(query, wanted, "codes", found.codes)),
        FacetGroup("Site", "devices", _links(query, wanted, "sites", sites)),
        FacetGroup(
            "Collector",
            "",
            _links(query, wanted, "collectors", dict.fromkeys(found.collectors, 0)),
        ),
    )
    bound = "" if count.is_exact else "at least "
    matches = f"{bound}{formatting.counted(count.number, 'device')}"
    as_of = formatting.instant(now_ms)
    return FacetsView(as_of, matches, [group for group in groups if group.links])


def _busiest(found: Facets) -> Iterator[SiteSummary]:
    """The sites with a name; the worst come first already."""
    yield from (site for site in found.sites if site.name)


def _links(
    query: DevicesQuery, wanted: TargetFilter, field: str, numbers: Mapping[str, int]
) -> list[FacetLink]:
    chosen = set(map(str, getattr(wanted, field)))
    shown = dict.fromkeys(chosen, 0) | dict(list(numbers.items())[:MOST])
    links = []
    for value in shown:
        number = numbers.get(value, 0)
        text = formatting.count(number) if number else ""
        url = query.of_filter(search_words.toggled(wanted, field, value), "../../devices")
        links.append(FacetLink(value or "no site", text, url, value in chosen))
    return links
