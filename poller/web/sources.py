"""What the web role asks of the rest of the program: three blocking questions and some addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poller import errors
from poller.db.rates import Asked, Rated
from poller.domain.overview import Overview


def _no_device(name: str, asked: Asked) -> Sequence[Rated]:
    raise errors.NotFound(f'no device named "{name}"')


@dataclass(frozen=True, slots=True)
class Sources:
    """`overview` and `rates` raise StoreError when they cannot be read; `ready` never raises."""

    overview: Callable[[], Overview]
    ready: Callable[[], Mapping[str, str]]  # dependency -> "" when fine, else the reason
    links: Mapping[str, str] = field(default_factory=dict)  # title -> http(s) address, shown in the header
    rates: Callable[[str, Asked], Sequence[Rated]] = _no_device  # of a device; raises NotFound
