"""What a fleet takes, computed: cores, memory, disk and bandwidth, each with how it comes about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.history import size_estimate
from poller.domain.history.size_estimate import FleetWrites, Retention, Written
from poller.domain.sizing import measured_figures as figures

_DAY_MS = 86_400_000
#: Samples of a device besides those of its interfaces: uptime and the like.
_DEVICE_SAMPLES = 2
#: A worker process is planned for this share of a core. It has one thread of Python.
WORKER_CORES = 0.5
#: Room to keep: after a restart every poll is a first poll, and an hour of polls may come at once.
CPU_HEADROOM = 2.0
MEMORY_HEADROOM = 1.5
#: PostgreSQL takes 1.3 times what SQLite takes, and needs room to clean up.
DISK_HEADROOM = 1.5
BANDWIDTH_HEADROOM = 1.5


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A fleet of like devices with one target each. `workers` 0: as many as it needs."""

    devices: int
    interfaces: int
    interval_ms: int
    retention: Retention
    runs_days: float
    samples_each: float = figures.INTERFACE_SAMPLES.value
    workers: int = 0
    sinks: int = 0  # besides the one of SQL
    target_homes: bool = False

    @property
    def samples(self) -> float:
        """Samples of a poll."""
        return self.interfaces * self.samples_each + _DEVICE_SAMPLES

    @property
    def polls_a_second(self) -> float:
        return self.devices * 1000 / self.interval_ms

    @property
    def samples_a_second(self) -> float:
        return self.polls_a_second * self.samples


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a fleet takes, and what to plan for it."""

    name: str
    amount: float
    planned: float  # with headroom
    unit: str
    how: str


def needs(plan: FleetPlan) -> list[Need]:
    """Return what a fleet takes."""
    cores = _cores(plan)
    workers = plan.workers or max(1, math.ceil(cores / WORKER_CORES))
    return [
        _cpu(plan, cores),
        Need("workers", workers, workers, "", f"a worker is planned for {WORKER_CORES:g} cores"),
        _memory(plan, workers),
        _disk(plan),
        _bandwidth("bandwidth in", plan, figures.DOWN_SAMPLE_BYTES.value),
        _bandwidth("bandwidth out", plan, figures.UP_SAMPLE_BYTES.value),
    ]


def _cores(plan: FleetPlan) -> float:
    return plan.polls_a_second * _poll_ms(plan) / 1000


def _poll_ms(plan: FleetPlan) -> float:
    return figures.POLL_MS.value + plan.samples * _sample_us(plan) / 1000


def _sample_us(plan: FleetPlan) -> float:
    sinks_us = plan.sinks * figures.SINK_SAMPLE_US.value
    return figures.SAMPLE_US.value + figures.HISTORY_SAMPLE_US.value + sinks_us


def _cpu(plan: FleetPlan, cores: float) -> Need:
    how = (
        f"{plan.polls_a_second:,.4g} polls/s x ({figures.POLL_MS.value:g} ms + {plan.samples:,.0f} "
        f"samples x {_sample_us(plan):.2g} us)"
    )
    return Need("cores", cores, max(1, math.ceil(cores * CPU_HEADROOM)), "cores", how)


def _memory(plan: FleetPlan, workers: int) -> Need:
    knowing = 1 if plan.target_homes else workers
    target_bytes = plan.samples * figures.WORKER_SAMPLE_BYTES.value
    leader_bytes = figures.LEADER_TARGET_BYTES.value + figures.SERVER_TARGET_BYTES.value
    processes_mb = (
        figures.BEAT_MB.value + figures.SERVER_MB.value + workers * figures.WORKER_MB.value
    )
    targets_mb = plan.devices * (knowing * target_bytes + leader_bytes) / 1e6
    how = (
        f"processes {processes_mb:,.0f} MB + {plan.devices:,} targets x {target_bytes / 1000:,.1f} "
        f"kB known to {knowing} of {workers} workers; the database's cache is not in it"
    )
    total_bytes = (processes_mb + targets_mb) * 1e6
    return Need("memory", total_bytes, total_bytes * MEMORY_HEADROOM, "bytes", how)


def disk_parts(plan: FleetPlan) -> Sequence[size_estimate.PartSize]:
    """Return the parts of history on disk."""
    nothing = Written()
    fleet = FleetWrites(
        devices=plan.devices,
        targets=plan.devices,
        polls_a_day=plan.devices * _DAY_MS / plan.interval_ms,
        fresh=nothing,
        blocks=nothing,
        five_minutes=nothing,
        hours=nothing,
        assumed_values=plan.samples,
    )
    return size_estimate.part_sizes(fleet, plan.retention, plan.devices)


def _disk(plan: FleetPlan) -> Need:
    parts = [(part.name, part.kept_days, part.total_bytes) for part in disk_parts(plan)]
    polls_a_day = plan.devices * _DAY_MS / plan.interval_ms
    runs_bytes = polls_a_day * plan.runs_days * figures.RUN_BYTES.value
    parts.append(("runs", plan.runs_days, round(runs_bytes)))
    how = " + ".join(f"{name} {_gigabytes(amount)} ({days:.3g} d)" for name, days, amount in parts)
    total = float(sum(amount for _, _, amount in parts))
    return Need("disk", total, total * DISK_HEADROOM, "bytes", how)


def _gigabytes(amount: int) -> str:
    number = amount / 1e9
    return f"{number:,.0f} GB" if number >= 100 else f"{number:.3g} GB"


def _bandwidth(name: str, plan: FleetPlan, sample_bytes: float) -> Need:
    bits = plan.samples_a_second * sample_bytes * 8
    how = f"{plan.samples_a_second:,.0f} samples/s x {sample_bytes:g} B"
    return Need(name, bits, bits * BANDWIDTH_HEADROOM, "bits/s", how)
