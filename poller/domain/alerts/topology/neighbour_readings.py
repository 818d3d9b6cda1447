"""What readings of the module `lldp` say of a device and its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from poller.domain.alerts.topology.neighbour_links import Sighting
from poller.domain.metrics.reading import Reading


@dataclass(slots=True)
class SeenNeighbours:
    """The own chassis and name of a device, and the neighbours that it sees."""

    chassis: str = ""
    system_name: str = ""
    sightings: list[Sighting] = field(default_factory=list)


def read(readings: Iterable[Reading]) -> SeenNeighbours:
    """Return what the readings of one poll say. Other readings are left out of account."""
    seen = SeenNeighbours()
    own_kind = 0.0
    for reading in readings:
        labels = reading.labels
        if reading.name == "lldpLocChassisIdSubtype":
            own_kind = reading.value
        elif reading.name == "lldpLocChassisId":
            seen.chassis = labels.get("lldpLocChassisId", "")
        elif reading.name == "lldpLocSysName":
            seen.system_name = labels.get("lldpLocSysName", "")
        elif reading.name == "lldpRemChassisIdSubtype":
            seen.sightings.append(_by_lldp(labels, reading.value))
        elif reading.name == "cdpCacheDeviceId":
            seen.sightings.append(_by_cdp(labels))
    seen.chassis = _chassis(own_kind, seen.chassis)
    return seen


def _by_lldp(labels: Mapping[str, str], kind: float) -> Sighting:
    port = labels.get("lldpRemPortDesc") or labels.get("lldpRemPortId", "")
    number = labels.get("lldpRemLocalPortNum", "")
    return Sighting(
        local_port=labels.get("lldpLocPortDesc") or number,
        chassis=_chassis(kind, labels.get("lldpRemChassisId", "")),
        name=labels.get("lldpRemSysName", ""),
        port=port,
    )


def _by_cdp(labels: Mapping[str, str]) -> Sighting:
    return Sighting(
        local_port=labels.get("cdpCacheIfIndex", ""),
        name=labels.get("cdpCacheDeviceId", ""),
        port=labels.get("cdpCacheDevicePort", ""),
        address=labels.get("cdpCacheAddress", ""),
    )


def _chassis(kind: float, text: str) -> str:
    """Return a chassis id with its kind, as two devices may have the same id of another kind."""
    return f"{kind:g}:{text.lower()}" if text.strip("0xX") else ""
