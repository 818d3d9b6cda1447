"""What does a counter count? Octets are shown as bit/s, all else as so many a second."""

from __future__ import annotations

import re
from collections.abc import Collection

from poller.presentation import formatting

_OCTETS = re.compile(r"(Octets|_octets|_bytes?)(_total)?$")


def per_second(metric: str, rate: float | None) -> str:
    """A rate as people read it; `–` for none."""
    if rate is None:
        return formatting.NOT_MEASURED
    return formatting.bits(8 * rate) if _OCTETS.search(metric) else formatting.rate(rate)


def traffic(names: Collection[str]) -> Collection[str]:
    """What people look at first: octets, in 64 bits where there are such; all where there are no octets."""
    octets = [name for name in names if _OCTETS.search(name)]
    wide = {name.replace("HC", "", 1) for name in octets if "HC" in name}
    return [name for name in octets if name not in wide] or names
