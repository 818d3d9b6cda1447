"""An inventory of simulated SNMP devices in two sites, one of which can go dark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from poller.bootstrap import Services
from poller.collectors import credentials as models
from poller.db.inventory import credential_rows, imports
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.sim import fleet
from poller.sim.fleet import SimDevice

FAR, NEAR = "far", "near"


@dataclass(frozen=True, slots=True)
class Pace:
    """The interval and the time-outs of a poll. Each retry waits half as long again."""

    interval_s: float
    timeout_s: float
    retries: int
    limit_s: float  # time limit of the whole poll

    @property
    def silence_s(self) -> float:
        """The duration of a poll without an answer."""
        return min(
            self.limit_s, sum(self.timeout_s * 1.5**number for number in range(self.retries + 1))
        )


def devices(number: int, far: int) -> list[SimDevice]:
    """Return `number` healthy devices; the first `far` are at the far site."""
    made = fleet.devices(number, snmp_share=1, faulty_share=0)
    return [replace(device, site=FAR if device.index < far else NEAR) for device in made]


def store(services: Services, simulated: Sequence[SimDevice], port: int, pace: Pace) -> None:
    """Fill an empty inventory, as an import does."""
    name = fleet.SNMP_CREDENTIAL
    secret = models.from_json(json.dumps(dict(fleet.CREDENTIALS[name])))
    credential_rows.add(
        services.engine,
        name,
        secret.kind,
        services.keyring.seal(secret.to_json(), name, secret.kind),
    )
    options = {
        "port": port,
        "modules": ["system", "if_mib"],
        "timeout": pace.timeout_s,
        "retries": pace.retries,
    }
    every_ms, limit_ms = round(pace.interval_s * 1000), round(pace.limit_s * 1000)
    target = TargetDraft("snmp", "snmp", options, interval_ms=every_ms, timeout_ms=limit_ms)
    rows = [imports.Row(DeviceDraft(d.name, d.address, d.site, name), [target]) for d in simulated]
    imports.apply_import(services.engine, rows)
