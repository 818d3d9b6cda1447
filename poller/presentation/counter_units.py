"""The unit of a counter by its name: octets are shown as bit/s, all other counters per second."""

from __future__ import annotations

import re
from collections.abc import Collection

from poller.presentation import formatting

_OCTETS = re.compile(r"(Octets|_octets|_bytes?)(_total)?$")


def per_second(metric: str, rate: float | None) -> str:
    """A rate with its unit; `–` for None."""
    if rate is None:
        return formatting.NOT_MEASURED
    if counts_octets(metric):
        return formatting.bits(8 * rate)
    return formatting.rate(rate)


def counts_octets(metric: str) -> bool:
    """Whether a counter counts octets, by its name."""
    return _OCTETS.search(metric) is not None


def traffic(names: Collection[str]) -> Collection[str]:
    """The counters that count octets, 64-bit ones where they exist; without octets all counters."""
    octets = [name for name in names if counts_octets(name)]
    return without_short_counters(octets) or names


def without_short_counters(names: Collection[str]) -> list[str]:
    """The counters without those that a 64-bit one replaces: `ifHCInOctets`, not `ifInOctets`."""
    replaced = {name.replace("HC", "", 1) for name in names if "HC" in name}
    return [name for name in names if name not in replaced]
