"""The enabled rules of one version, with their filters ready for use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from poller.domain.alerts.alert import Subject
from poller.domain.alerts.flow.known_device import KnownDevice, is_wanted
from poller.domain.alerts.rule import (
    Condition,
    DeviceUnreachable,
    PlatformTrouble,
    Rule,
    SiteDark,
)
from poller.domain.inventory.filter_match import DeviceFacts, FilterMatch

_Kind = TypeVar("_Kind")


class Selected(NamedTuple):
    """A rule and the things that it is for."""

    rule: Rule
    wanted: FilterMatch

    def accepts(self, device: KnownDevice, target_id: int | None = None) -> bool:
        """Whether the rule is for a device, or for one of its targets."""
        return is_wanted(self.wanted, device, target_id)

    def accepts_site(self, site: str) -> bool:
        """Whether the rule is for a site. A filter of devices selects no site."""
        return self.wanted.accepts(DeviceFacts("", site=site))


class KnownRules:
    """Rules by name and id, and by what they are about."""

    def __init__(self, version: int, rules: Sequence[Rule]) -> None:
        self.version = version
        self._selected = [Selected(each, FilterMatch(each.where)) for each in rules if each.enabled]
        self.by_name = {each.rule.name: each.rule for each in self._selected}
        self._by_id = {each.rule.id: each for each in self._selected}

    def by_id(self, rule_id: int) -> Selected | None:
        """Return the rule with an id; None if it was removed or disabled."""
        return self._by_id.get(rule_id)

    def of_kind(self, kind: type[_Kind]) -> Iterator[tuple[Selected, _Kind]]:
        """Yield the rules with a condition of one kind, each with its condition."""
        for each in self._selected:
            if isinstance(each.rule.condition, kind):
                yield each, each.rule.condition

    def tell_of_site(self, site: str) -> bool:
        """Whether a rule tells that this site is dark."""
        return any(selected.accepts_site(site) for selected, _ in self.of_kind(SiteDark))

    def applies(self, name: str, device: KnownDevice | None, target_id: int | None) -> bool:
        """Whether a rule is still for a device or its target; for a device that is removed it is
        for nothing.
        """
        rule = self.by_name.get(name)
        if rule is None or device is None:
            return False
        if target_id is not None and target_id not in device.targets:
            return False
        return self._by_id[rule.id].accepts(device, target_id)


def is_about_devices(condition: Condition) -> bool:
    """Whether the alerts of a condition name a device."""
    return not isinstance(condition, SiteDark | PlatformTrouble)


def is_about_targets(condition: Condition) -> bool:
    """Whether the alerts of a condition name a target of a device."""
    return is_about_devices(condition) and not isinstance(condition, DeviceUnreachable)


def is_about(condition: Condition, subject: Subject) -> bool:
    """Whether a condition makes alerts of such a subject: a rule may have been given another one
    since.
    """
    if is_about_targets(condition):
        return subject.target_id is not None
    if is_about_devices(condition):
        return subject.device_id is not None and subject.target_id is None
    is_of_site = subject.device_id is None and bool(subject.site)
    is_of_platform = subject.device_id is None and not subject.site
    return is_of_site if isinstance(condition, SiteDark) else is_of_platform
