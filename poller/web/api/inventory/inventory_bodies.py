"""Bodies of devices and targets: what is read, what makes a new one, and what an edit changes.

Durations are texts such as `60s` or `1h30m`. A field that a request leaves out stays as it is, or
gets its default. The text "" is a value: no site, no credential.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.domain.inventory import duration, target_filter
from poller.service.inventory.device_actions import DeviceChange
from poller.service.inventory.new_sites import NewSite
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE

_LONGEST = 200
MOST_FIRST_TARGETS = 50

DeviceName = Annotated[str, Path(max_length=_LONGEST, description="The name of the device.")]
TargetName = Annotated[str, Path(max_length=_LONGEST, description="The name of the target.")]
TargetId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of the target.")]
WhereQuery = Annotated[
    str,
    Query(
        max_length=LONGEST_WHERE,
        pattern=r"^[^\x00]*$",
        description=f"A filter, such as {target_filter.EXAMPLE}; empty: all. "
        f"Keys: {', '.join(target_filter.KEYS)}.",
    ),
]

Name = Annotated[str, Field(max_length=_LONGEST)]
Duration = Annotated[str, Field(max_length=50, examples=["60s", "1h30m"])]
Tags = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=100)]
Requires = Annotated[
    dict[str, str], Field(max_length=50, description="Tags that its workers must have.")
]
Options = Annotated[dict[str, Any], Field(description="Options of the collector.")]
PolicyName = Literal["fixed", "adaptive"]


class _Given(BaseModel):
    """A body whose absent fields are told apart from given ones."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """The fields that the request has."""
        return self.model_dump(exclude_unset=True)


class _Schedule(_Given):
    policy: PolicyName = Field(default_factory=lambda: "fixed")
    interval: Duration = Field(default_factory=str, description="Time from poll to poll.")
    min: Duration = Field(default_factory=str, description="Shortest interval, if adaptive.")
    max: Duration = Field(default_factory=str, description="Longest interval, if adaptive.")
    staleness: Name = Field(default_factory=str, description="What an adaptive target adapts to.")
    timeout: Duration = Field(default_factory=str, description="Longest time of one poll.")


class NewTarget(_Schedule):
    """A target to be added."""

    collector: Name
    name: Name = Field(default_factory=str, description="Its name on the device: the collector's.")
    options: Options = Field(default_factory=dict)
    credential: Name = Field(default_factory=str, description="Empty: that of its device.")
    requires: Requires = Field(default_factory=dict)
    enabled: bool = Field(default_factory=lambda: True)


class TargetEdit(_Schedule):
    """The fields of a target to be changed."""

    name: Name = Field(default_factory=str, description="The new name.")
    options: Options = Field(
        default_factory=dict, description="Options to set; null removes one. Others stay."
    )
    credential: Name = Field(default_factory=str, description="Empty: that of its device.")
    requires: Requires = Field(default_factory=dict)
    enabled: bool = Field(default_factory=lambda: True)

    def split(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The given fields, and the given options or None."""
        fields = self.given()
        return fields, fields.pop("options", None)


class _DeviceFields(_Given):
    site: Name = Field(default_factory=str, description="A new name makes a new site; empty: none.")
    credential: Name = Field(default_factory=str, description="Empty: none.")
    tags: Tags = Field(default_factory=list)
    requires: Requires = Field(default_factory=dict)
    enabled: bool = Field(default_factory=lambda: True)
    parent: Name = Field(
        default_factory=str, description="The device through which it is reached; empty: none."
    )


class NewDevice(_DeviceFields):
    """A device to be added, with its first targets."""

    name: Name
    address: Annotated[str, Field(max_length=253)]
    targets: list[NewTarget] = Field(
        default_factory=list,
        max_length=MOST_FIRST_TARGETS,
        description="Absent: one target of the default collector. Empty: none.",
    )

    def split(self) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
        """The given fields, and the given targets or None."""
        fields = self.given()
        return fields, fields.pop("targets", None)


class DeviceBulkEdit(_DeviceFields):
    """The fields of many devices to be changed."""

    add_tags: Tags = Field(default_factory=list, description="Tags to add to the old ones.")
    remove_tags: Tags = Field(default_factory=list, description="Tags to remove.")


class DeviceEdit(DeviceBulkEdit):
    """The fields of a device to be changed."""

    name: Name = Field(default_factory=str, description="The new name.")
    address: Annotated[str, Field(max_length=253)] = Field(default_factory=str)


class DeviceItem(BaseModel):
    """A device as it is read."""

    id: int
    name: str
    address: str
    site: str = Field(description="Empty: none.")
    credential: str = Field(description="The name of its credential; empty: none.")
    tags: list[str]
    requires: dict[str, str] = Field(description="Tags that its workers must have.")
    enabled: bool
    parent: str = Field(description="The device through which it is reached; empty: none.")
    target_count: int
    created_at: datetime
    updated_at: datetime


class TargetItem(BaseModel):
    """A target as it is read."""

    id: int
    device: str
    site: str
    name: str
    collector: str
    options: dict[str, Any]
    credential: str = Field(description="Its own credential; empty: that of its device.")
    requires: dict[str, str]
    policy: PolicyName
    interval: str = Field(description="Such as 1m; the base, if adaptive.")
    interval_ms: int
    min: str | None
    max: str | None
    staleness: str | None
    timeout: str
    timeout_ms: int
    enabled: bool


class DeviceBody(DeviceItem):
    """A device with its targets."""

    targets: list[TargetItem]


class CreatedSite(BaseModel):
    """A site that a change makes."""

    name: str
    similar: str | None = Field(description="An existing site with a similar name, if any.")


class ChangedDevice(DeviceItem):
    """A device after a change."""

    new_sites: list[CreatedSite] = Field(description="Sites that the change made.")
    notes: list[str] = Field(description="What may be forgotten, such as a credential.")


class ChangedTarget(TargetItem):
    """A target after a change."""

    notes: list[str] = Field(description="What may be forgotten, such as a credential.")


def device_item(device: Device) -> DeviceItem:
    """The body of a device."""
    return DeviceItem(**_device_fields(device))


def device_body(device: Device, targets: Sequence[Target]) -> DeviceBody:
    """The body of a device with its targets."""
    items = [target_item(target) for target in targets]
    return DeviceBody(**_device_fields(device), targets=items)


def changed_device(change: DeviceChange) -> ChangedDevice:
    """The body of a device after a change."""
    return ChangedDevice(
        **_device_fields(change.device),
        new_sites=created_sites(change.new_sites),
        notes=list(change.notes),
    )


def created_sites(created: Sequence[NewSite]) -> list[CreatedSite]:
    """The bodies of new sites."""
    return [CreatedSite(name=site.name, similar=site.near) for site in created]


def target_item(target: Target) -> TargetItem:
    """The body of a target."""
    return TargetItem(**_target_fields(target))


def changed_target(target: Target, notes: Sequence[str] = ()) -> ChangedTarget:
    """The body of a target after a change."""
    return ChangedTarget(**_target_fields(target), notes=list(notes))


def _device_fields(device: Device) -> dict[str, Any]:
    return {
        "id": device.id,
        **device.fields,
        "target_count": device.targets,
        "created_at": device.created_at,
        "updated_at": device.updated_at,
    }


def _target_fields(target: Target) -> dict[str, Any]:
    named = ("id", "device", "site", "name", "collector", "options", "credential", "requires")
    return {
        **{name: getattr(target, name) for name in named},
        "policy": target.policy.value,
        "interval": duration.format_ms(target.interval_ms),
        "interval_ms": target.interval_ms,
        "min": _duration(target.min_ms),
        "max": _duration(target.max_ms),
        "staleness": target.staleness,
        "timeout": duration.format_ms(target.timeout_ms),
        "timeout_ms": target.timeout_ms,
        "enabled": target.enabled,
    }


def _duration(value_ms: int | None) -> str | None:
    return None if value_ms is None else duration.format_ms(value_ms)
