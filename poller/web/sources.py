"""What the web role asks of the rest of the program: two blocking questions and some addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from poller.domain.overview import Overview


@dataclass(frozen=True, slots=True)
class Sources:
    """`overview` raises StoreError when it cannot be read; `ready` never raises."""

    overview: Callable[[], Overview]
    ready: Callable[[], Mapping[str, str]]  # dependency -> "" when fine, else the reason
    links: Mapping[str, str] = field(default_factory=dict)  # title -> http(s) address, shown in the header
