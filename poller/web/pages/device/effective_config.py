"""What a target is polled with, and where each value comes from. Credentials are named only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.domain.inventory import duration
from poller.domain.scheduling import schedule
from poller.domain.scheduling.schedule import Defaults, Schedule
from poller.presentation import formatting
from poller.web.pages.device.target_form import text_of

#: The value that everybody looks for first.
_ALWAYS = "interval"


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One value, and where it comes from."""

    name: str
    value: str
    origin: str
    about: str = ""

    @property
    def is_default(self) -> bool:
        """Whether nobody has set the value."""
        return self.origin.startswith("default")


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """The values of a target. `defaults` are those that are left out, because they are usual."""

    target: str
    collector: str
    rows: Sequence[ConfigRow]
    defaults: int = 0

    def without_defaults(self) -> TargetConfig:
        """The values that the target, the device or the site has of its own."""
        own = [row for row in self.rows if row.name == _ALWAYS or not row.is_default]
        return replace(self, rows=own, defaults=len(self.rows) - len(own))


@dataclass(frozen=True, slots=True)
class CollectorFacts:
    """The declarations of a collector: its options with their defaults, and its schedule."""

    options: Sequence[Mapping[str, Any]] = ()
    defaults: Defaults = schedule.NO_DEFAULTS


def of_device(device: Device) -> list[ConfigRow]:
    """Return the values of a device itself."""
    requires = ", ".join(f"{key}={value}" for key, value in device.requires.items())
    return [
        ConfigRow("address", device.address, "device"),
        ConfigRow("site", device.site or formatting.NOT_MEASURED, "device"),
        ConfigRow("credential", device.credential or formatting.NOT_MEASURED, "device"),
        ConfigRow("parent", device.parent or formatting.NOT_MEASURED, "device"),
        ConfigRow("tags", ", ".join(device.tags) or formatting.NOT_MEASURED, "device"),
        ConfigRow("requires", requires or formatting.NOT_MEASURED, "device"),
        ConfigRow("polled", "yes" if device.enabled else "no: disabled", "device"),
    ]


def of_target(
    target: Target, device: Device, facts: CollectorFacts, site_requires: Mapping[str, str]
) -> TargetConfig:
    """Return the values of a target."""
    rows = [
        ConfigRow("polled", "yes" if target.enabled else "no: disabled", "target"),
        *_schedule(target, facts.defaults),
        _credential(target, device),
        *_required(target, device, site_requires),
        *_options(target, facts.options),
    ]
    return TargetConfig(target.name, target.collector, rows)


def _schedule(target: Target, defaults: Defaults) -> Iterator[ConfigRow]:
    """The schedule. A value that equals the default of now is called so, typed or not."""
    usual = schedule.resolve(Schedule(policy=target.policy), None, defaults)
    yield ConfigRow("policy", target.policy.value, "target")
    pairs = (
        ("interval", target.interval_ms, usual.interval_ms, defaults.declared.interval_ms),
        ("min", target.min_ms, usual.min_ms, defaults.declared.min_ms),
        ("max", target.max_ms, usual.max_ms, defaults.declared.max_ms),
        ("timeout", target.timeout_ms, usual.timeout_ms, defaults.declared.timeout_ms),
    )
    for name, value_ms, usual_ms, declared_ms in pairs:
        if value_ms is None:
            continue
        origin = "target"
        if value_ms == usual_ms:
            is_declared = declared_ms == value_ms
            origin = f"default of collector {target.collector}" if is_declared else "default"
        yield ConfigRow(name, duration.format_ms(value_ms), origin)
    if target.staleness:
        yield ConfigRow("staleness", target.staleness, "target")


def _credential(target: Target, device: Device) -> ConfigRow:
    if target.credential:
        return ConfigRow("credential", target.credential, "target")
    if device.credential:
        return ConfigRow("credential", device.credential, "device")
    return ConfigRow("credential", formatting.NOT_MEASURED, "none is set")


def _required(
    target: Target, device: Device, site_requires: Mapping[str, str]
) -> Iterator[ConfigRow]:
    """The tags that its workers must have: those of the site, the device and the target."""
    layers = (
        (f"site {device.site}", site_requires),
        ("device", device.requires),
        ("target", target.requires),
    )
    for origin, tags in layers:
        for key, value in tags.items():
            yield ConfigRow("requires", f"{key}={value}", origin)


def _options(target: Target, described: Sequence[Mapping[str, Any]]) -> Iterator[ConfigRow]:
    for option in described:
        name = option["name"]
        is_own = name in target.options
        value = target.options[name] if is_own else option["default"]
        origin = "target" if is_own else f"default of collector {target.collector}"
        text = text_of(value) or formatting.NOT_MEASURED
        yield ConfigRow(f"option {name}", text, origin, option["description"])
    known = {option["name"] for option in described}
    for name in sorted(target.options.keys() - known):
        yield ConfigRow(f"option {name}", text_of(target.options[name]), "target")
