"""Simulated SNMP agents of one size, and the inventory that polls them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks import progress
from poller.bootstrap import Services
from poller.collectors import credentials as models
from poller.db.inventory import credential_rows, imports
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.sim import fleet, hardware
from poller.sim.fleet import SimDevice
from poller.sim.snmp import mib

#: Four interfaces: a typical if_mib poll.
MODEL = hardware.BRANCH_4.name
#: The maximum number of variables in a response, for all candidates.
REPETITIONS = 50
_PER_IMPORT = 10_000


@dataclass(frozen=True, slots=True)
class PollRequest:
    """The variables to read, the interval, and the time-outs."""

    interval_s: float
    modules: tuple[str, ...] = ("if_mib",)
    timeout_s: float = 1.5
    retries: int = 2
    longest_s: float = 10.0  # time limit of the whole poll, which must end before the next
    config: str = ""  # a file with modules of its own

    @property
    def limit_s(self) -> float:
        return min(self.longest_s, 0.8 * self.interval_s)


def devices(number: int, model: str = MODEL) -> list[SimDevice]:
    """Return `number` healthy devices of one chassis."""
    made = fleet.devices(number, snmp_share=1, faulty_share=0)
    return [replace(device, model=model, variant=0) for device in made]


def oids(roots: Sequence[str]) -> set[str]:
    """Return every variable of such a device below these roots."""
    wanted = [tuple(map(int, root.split("."))) for root in roots]
    names = mib.mib(MODEL, 0).v2c.names
    return {
        ".".join(map(str, name))
        for name in names
        if any(name[: len(root)] == root for root in wanted)
    }


def store(
    services: Services, simulated: Sequence[SimDevice], port: int, request: PollRequest
) -> None:
    """Fill an empty inventory, as imports do."""
    name = fleet.SNMP_CREDENTIAL
    secret = models.from_json(json.dumps(dict(fleet.CREDENTIALS[name])))
    credential_rows.add(
        services.engine,
        name,
        secret.kind,
        services.keyring.seal(secret.to_json(), name, secret.kind),
    )
    target = _target(request, port)
    rows = [imports.Row(DeviceDraft(d.name, d.address, d.site, name), [target]) for d in simulated]
    with progress.shown(f"storing {len(rows):,} devices in SQLite", len(rows)) as show:
        for start in range(0, len(rows), _PER_IMPORT):
            imports.apply_import(services.engine, rows[start : start + _PER_IMPORT])
            show(start)


def _target(request: PollRequest, port: int) -> TargetDraft:
    options = {
        "port": port,
        "modules": list(request.modules),
        "timeout": request.timeout_s,
        "retries": request.retries,
        "max_repetitions": REPETITIONS,
        **({"config": request.config} if request.config else {}),
    }
    every_ms, limit_ms = round(request.interval_s * 1000), round(request.limit_s * 1000)
    return TargetDraft("snmp", "snmp", options, interval_ms=every_ms, timeout_ms=limit_ms)
