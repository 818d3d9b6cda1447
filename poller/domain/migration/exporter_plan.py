"""The devices and targets that scraped targets become, in the form of an inventory file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from poller import errors
from poller.domain.inventory import duration, host_port, naming
from poller.domain.inventory.host_port import HostPort
from poller.domain.migration.snmp_jobs import ScrapedTarget

_SNMP_PORT = 161
#: Labels that become no tags: the device's name, and what Prometheus needs.
_NO_TAGS = ("instance", "job")


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which labels name the device and its site; the others become tags."""

    name: str = "instance"
    site: str = "site"


@dataclass(frozen=True, slots=True)
class AuthUse:
    """A login of the exporter's file as a target uses it."""

    credential: str
    version: str = ""  # "1" where it has to be said
    context: str = ""


@dataclass(slots=True)
class DevicePlan:
    """One device and its targets."""

    name: str
    address: str
    site: str
    tags: list[str]
    targets: list[dict[str, Any]] = field(default_factory=list)

    @property
    def row(self) -> dict[str, Any]:
        """The device as an inventory file has it."""
        found: dict[str, Any] = {"name": self.name, "address": self.address}
        if self.site:
            found["site"] = self.site
        if self.tags:
            found["tags"] = self.tags
        return {**found, "targets": self.targets}


@dataclass(slots=True)
class Plan:
    """All devices by name, and notes about those that need a look."""

    devices: dict[str, DevicePlan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def targets(self) -> int:
        return sum(len(device.targets) for device in self.devices.values())


def make(
    scraped: Iterable[ScrapedTarget],
    auths: Mapping[str, AuthUse],
    options_of: Mapping[tuple[str, ...], Mapping[str, Any]],
    labelling: Labelling,
) -> Plan:
    """Return the plan. `options_of` has the options that select some modules."""
    plan = Plan()
    for target in scraped:
        try:
            where = host_port.parse_snmp_target(target.target)
        except errors.InvalidInput as error:
            plan.notes.append(f"job {target.job}: {target.target} is left out: {error.message}")
            continue
        device = _device(plan, target, where, labelling)
        options = {**options_of[target.modules], **_auth_options(target, auths)}
        if where.port not in (None, _SNMP_PORT):
            options["port"] = where.port
        _add_target(device, target, options, auths[target.auth].credential)
    return plan


def _device(plan: Plan, target: ScrapedTarget, where: HostPort, labelling: Labelling) -> DevicePlan:
    """Return the device of a target: a new one, or the one with the same name and address."""
    name = _name(target, where, labelling)
    known = plan.devices.get(name)
    if known is not None and known.address != where.host:
        other_name = _free_name(plan, where)
        plan.notes.append(
            f"job {target.job}: {name} is {known.address} and {where.host}: the second one is "
            f"named {other_name}"
        )
        name = other_name
        known = plan.devices.get(name)
    if known is None:
        tags = sorted(_tags(target.labels, labelling))
        site = _clean(target.labels.get(labelling.site, ""))
        known = plan.devices[name] = DevicePlan(name, where.host, site, tags)
    return known


def _free_name(plan: Plan, where: HostPort) -> str:
    """Return a name made of the address that no device with another address has."""
    name = first = _clean(str(where))
    number = 2
    while name in plan.devices and plan.devices[name].address != where.host:
        name = f"{first}-{number}"
        number += 1
    return name


def _name(target: ScrapedTarget, where: HostPort, labelling: Labelling) -> str:
    """Return the label that names the device, without its port; else the address."""
    text = target.labels.get(labelling.name, "")
    if text in ("", target.target, str(where)):
        return _clean(where.host)
    with suppress(errors.InvalidInput):  # a free name has no port
        text = host_port.parse_snmp_target(text).host
    return _clean(text) or _clean(where.host)


def _clean(text: str) -> str:
    """Return a text with `-` for what no name has."""
    kept = [each if each.isprintable() and not each.isspace() else "-" for each in text]
    return "".join(kept).replace("/", "-").replace("\\", "-").strip("-")[: naming.LONGEST_NAME]


def _tags(labels: Mapping[str, str], labelling: Labelling) -> Iterable[str]:
    for name, text in labels.items():
        if name in (*_NO_TAGS, labelling.name, labelling.site):
            continue
        tag = f"{name}:{text}"
        tag = "".join(each if not naming.word_fault(each) else "-" for each in tag)
        yield tag[: naming.LONGEST_WORD]


def _auth_options(target: ScrapedTarget, auths: Mapping[str, AuthUse]) -> dict[str, str]:
    use = auths[target.auth]
    context = target.context or use.context
    named = {"version": use.version, "context": context}
    return {name: text for name, text in named.items() if text}


def _add_target(
    device: DevicePlan, target: ScrapedTarget, options: Mapping[str, Any], credential: str
) -> None:
    """Add a target, unless another job asks for the same at the same interval."""
    wanted = {
        "collector": "snmp",
        "credential": credential,
        "interval": duration.format_ms(target.interval_ms),
        "timeout": duration.format_ms(target.timeout_ms),
        "options": dict(options),
    }
    for known in device.targets:
        if {key: known[key] for key in wanted} == wanted:
            return
    names = {known["name"] for known in device.targets}
    name = "snmp" if not names else f"snmp-{'-'.join(target.modules)}"
    number = 2
    while name in names:
        name = f"snmp-{'-'.join(target.modules)}-{number}"
        number += 1
    device.targets.append({"name": name, **wanted})
