"""Why targets fail, grouped by error code and site; and what that means for each site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple


class FailingTarget(NamedTuple):
    """A target that fails, and where it is."""

    device_id: int
    site: str
    code: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Targets of one site that fail for one reason."""

    code: str
    site: str  # "" is a device without a site
    targets: int
    devices: int


@dataclass(frozen=True, slots=True)
class SiteSummary:
    """One site. A dark site has `dark_since_ms`; 0 is a site that is not dark."""

    name: str
    devices: int
    failing: int = 0  # devices with a failing target
    dark_since_ms: int = 0
    held: int = 0  # targets that wait for the dark site

    @property
    def state(self) -> str:
        """`dark`, `failing` or `ok`; `empty` without a device."""
        if self.dark_since_ms:
            return "dark"
        if self.failing:
            return "failing"
        return "ok" if self.devices else "empty"


def group(failing: Iterable[FailingTarget]) -> list[Cause]:
    """Return the causes, the one with most devices first."""
    targets: Counter[tuple[str, str]] = Counter()
    devices: dict[tuple[str, str], set[int]] = {}
    for each in failing:
        key = (each.code, each.site)
        targets[key] += 1
        devices.setdefault(key, set()).add(each.device_id)
    causes = [Cause(*key, targets[key], len(devices[key])) for key in targets]
    return sorted(causes, key=lambda cause: (-cause.devices, cause.code, cause.site))


def by_code(causes: Iterable[Cause]) -> dict[str, int]:
    """Return the failing targets by code, most first."""
    numbers: Counter[str] = Counter()
    for cause in causes:
        numbers[cause.code] += cause.targets
    return dict(numbers.most_common())


def sites(
    devices: Mapping[str, int],
    failing: Iterable[FailingTarget],
    dark: Mapping[str, int],
    held: Mapping[str, int] = MappingProxyType({}),
) -> list[SiteSummary]:
    """Return all sites, the worst first. `devices` counts those of each, `dark` says since when,
    and `held` counts the targets that wait for a dark site.
    """
    failing_at: dict[str, set[int]] = {}
    for each in failing:
        failing_at.setdefault(each.site, set()).add(each.device_id)
    found = [
        SiteSummary(
            name,
            number,
            failing=len(failing_at.get(name, ())),
            dark_since_ms=dark.get(name, 0),
            held=held.get(name, 0),
        )
        for name, number in devices.items()
    ]
    return worst_first(found)


def with_dark(found: Iterable[SiteSummary], dark: Mapping[str, int]) -> list[SiteSummary]:
    """Return sites, the worst first, with these outages instead of their own."""
    by_name = {site.name: site for site in found}
    for name in dark:
        by_name.setdefault(name, SiteSummary(name, 0))
    lit = []
    for name, site in by_name.items():
        since_ms = dark.get(name, 0)
        lit.append(replace(site, dark_since_ms=since_ms, held=site.held if since_ms else 0))
    return worst_first(lit)


def worst_first(found: Iterable[SiteSummary]) -> list[SiteSummary]:
    """Return dark sites, then those with most failing devices, then the others by name."""
    return sorted(found, key=lambda site: (not site.dark_since_ms, -site.failing, site.name))
