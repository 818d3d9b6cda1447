"""Words that complete a filter while it is typed: keys, and the values of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from poller.db.inventory import filter_conditions
from poller.domain.failures import error_codes
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetState
from poller.service.fleet import fleet_picture

if TYPE_CHECKING:
    from poller.bootstrap import Services

MOST = 20


def complete(services: Services, word: str) -> list[str]:
    """Return words that begin with this one: `si` gives `site:`, `state:f` gives `state:failing`.

    Only values that are at hand are offered; names and tags are not. Raises StoreError.
    """
    key, colon, typed = word.partition(":")
    if not colon:
        return [f"{each}:" for each in target_filter.KEYS if each.startswith(key)]
    values = _VALUES.get(key)
    if values is None:
        return []
    before, comma, last = typed.rpartition(",")
    matching = sorted(each for each in values(services) if each and each.startswith(last))
    return [f"{key}:{before}{comma}{each}" for each in matching[:MOST]]


def _sites(services: Services) -> Iterable[str]:
    return [site.name for site in fleet_picture.picture(services).sites]


def _collectors(services: Services) -> Iterable[str]:
    return filter_conditions.collectors_in_use(services.engine)


def _states(_services: Services) -> Iterable[str]:
    return [state.value for state in TargetState]


def _codes(_services: Services) -> Iterable[str]:
    return error_codes.TABLE


_VALUES: Mapping[str, Callable[[Services], Iterable[str]]] = {
    "site": _sites,
    "collector": _collectors,
    "state": _states,
    "code": _codes,
}
