"""What the web role asks of the rest of the program: five blocking questions and some addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poller import errors
from poller.collectors.registry import Registry
from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.domain.record.overview import Overview
from poller.presentation.collector_trust import CollectorTrust
from poller.presentation.device_state import Standing
from poller.web.pages.collectors_page import Found


def _no_device(name: str, asked: RatesRequest) -> Sequence[TargetRates]:
    raise errors.NotFound(f'no device named "{name}"')


def _unseen(name: str, targets: Sequence[int]) -> Standing:
    return Standing()


def _none_installed() -> Found:
    return Found(Registry(), CollectorTrust({}, frozenset()), ())


@dataclass(frozen=True, slots=True)
class Sources:
    """All but `ready`, which never raises, raise StoreError when they cannot be read."""

    overview: Callable[[], Overview]
    ready: Callable[[], Mapping[str, str]]  # dependency -> "" when fine, else the reason
    links: Mapping[str, str] = field(
        default_factory=dict
    )  # title -> http(s) address, shown in the header
    rates: Callable[[str, RatesRequest], Sequence[TargetRates]] = (
        _no_device  # of a device; raises NotFound
    )
    collectors: Callable[[], Found] = _none_installed
    standing: Callable[[str, Sequence[int]], Standing] = (
        _unseen  # of a device and these targets; raises NotFound
    )
