"""What does one poll of the whole platform cost, against the obvious design and snmp_exporter?

All candidates read the same simulated agents with the same module in one run. Their values are
compared before the measurement. The CPU of the agents is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import agents, cluster, equal, exporter, if_mib, ledger, obvious, progress, quantile
from benchmarks.roles import Meter, Used
from benchmarks.section import Figure, Findings, Grid, Row, Section
from benchmarks.stage import Stage
from poller import errors
from poller.db import engine as sql
from poller.db.inventory import lookup
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.sim.fleet import SimDevice
from poller.sim.sim_process import simulated

GOAL_MS, OBVIOUS_TIMES, EXPORTER_TIMES = 1.0, 25.0, 3.0
#: The share of due polls that a candidate must complete to keep up.
KEPT_UP = 0.95
OURS, OBVIOUS, EXPORTER = "poller", "obvious design", "snmp_exporter"


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    interval_s: float
    measure_s: float
    obvious_devices: int  # the maximum for this design
    obvious_s: float
    exporter_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one candidate."""

    used: Used
    polls: int
    late: Counter[int]
    samples: int  # of one poll

    @property
    def total_ms(self) -> float:
        return sum(self.role_ms.values())

    @property
    def role_ms(self) -> dict[str, float]:
        """Return the CPU of each role per poll, in ms."""
        return {role: spent / max(1, self.polls) * 1000 for role, spent in self.used.cpu_s.items()}


def run(size: Size, stage: Stage) -> Findings:
    fleet, costs = agents.devices(size.devices), dict[str, Cost]()
    with simulated(fleet) as simulator:
        agents.store(stage.services, fleet, simulator.snmp, agents.PollRequest(size.interval_s))
        with _exporter(stage, simulator.snmp) as other:
            costs[OURS], agents_ms, variables = _platform(
                size, stage, fleet[0], simulator.pid, other
            )
            if other:
                costs[EXPORTER] = _exported(
                    size, other, [device.address for device in fleet], costs[OURS].samples
                )
        few = fleet[: size.obvious_devices]
        measured = obvious.measure(few, simulator.snmp, size.interval_s, size.obvious_s)
        costs[OBVIOUS] = Cost(measured.used, measured.polls, measured.late, measured.samples)
    figures = [*_figures(costs), Figure("variables", "variables of a poll", variables, "")]
    figures.append(Figure("agents_ms", "CPU of the agents, not counted", agents_ms, "ms"))
    return Findings(figures, grid=_grid(costs), notes=list(_notes(size, costs)))


@contextmanager
def _exporter(stage: Stage, port: int) -> Iterator[exporter.Exporter | None]:
    if not exporter.installed():
        yield None
        return
    with exporter.running(stage.home, port) as running:
        yield running


def _platform(
    size: Size, stage: Stage, device: SimDevice, simulator: int, other: exporter.Exporter | None
) -> tuple[Cost, float, int]:
    """Measure the platform. Returns its cost, the CPU of the agents per poll, and the variables."""
    ours = cluster.start(stage)
    ours.steady(size.devices, size.interval_s)
    variables = (
        _verify(stage, other, device, size.interval_s)
        if other
        else len(agents.oids(if_mib.roots()))
    )
    meter, apart = Meter(ours.roles), Meter({"agents": [simulator]})
    progress.wait("measuring the platform", size.measure_s)
    cost, agents_s = _ours(stage, meter.read()), apart.read().cpu_s["agents"]
    ours.stop()
    return cost, agents_s / cost.polls * 1000, variables


def _verify(stage: Stage, other: exporter.Exporter, device: SimDevice, interval_s: float) -> int:
    """Compare stored readings with a scrape between them. Returns the number of variables.

    A poll that ran beside the scrape may have read a counter before it: the second poll has not.
    """
    before = _latest(stage, device)
    scraped, variables = other.scrape(device.address)
    beside = _next(stage, device, after=_latest(stage, device), interval_s=interval_s)
    after = _next(stage, device, after=beside, interval_s=interval_s)
    equal.same_values("the exporter", scraped, before.readings, after.readings)
    return variables


def _next(stage: Stage, device: SimDevice, after: Stored, interval_s: float) -> Stored:
    """Wait for the next stored poll of the device, and return it."""
    within_s = cluster.PATIENCE_S + 2 * interval_s
    cluster.until("comparing", 1, lambda: _latest(stage, device).at_ms > after.at_ms, within_s)
    return _latest(stage, device)


def _latest(stage: Stage, device: SimDevice) -> Stored:
    with sql.reading(stage.services.engine) as conn:
        target = lookup.target_id(conn, device.name, "snmp")
    return stored_readings.latest(stage.services.engine, [target])[target]


def _ours(stage: Stage, used: Used) -> Cost:
    found = ledger.ended(ledger.polls(stage.services.engine, 0), used.began_ms, used.ended_ms)
    bad = sum(not poll.good for poll in found)
    if bad or not found:
        raise errors.StoreConflict(
            f"{bad:,} of {len(found):,} polls of healthy agents failed: nothing to compare"
        )
    return Cost(used, len(found), ledger.late(found), found[-1].samples)


def _exported(size: Size, other: exporter.Exporter, addresses: Sequence[str], samples: int) -> Cost:
    measured = other.measure(addresses, size.devices / size.interval_s, size.exporter_s)
    return Cost(measured.used, measured.polls, measured.late, samples)


def _figures(costs: Mapping[str, Cost]) -> Iterator[Figure]:
    ours = costs[OURS]
    yield Figure("poll_ms", "CPU of a poll, whole platform", ours.total_ms, "ms", at_most=GOAL_MS)
    for role, spent in ours.role_ms.items():
        yield Figure(f"{role}_ms", f"of it, {role}", spent, "ms")
    yield Figure("per_core", "polls one core does", 1000 / ours.total_ms, "/s")
    yield Figure("late_p99_ms", "lateness, 99 %", quantile.of(ours.late, 0.99), "ms", below=1000)
    yield Figure("samples", "samples of a poll", ours.samples, "")
    ratios = ((OBVIOUS, "obvious", OBVIOUS_TIMES), (EXPORTER, "exporter", EXPORTER_TIMES))
    for other, name, goal in ratios:
        theirs = costs[other].total_ms if other in costs else None
        yield Figure(f"{name}_ms", f"CPU of a poll, {other}", theirs, "ms")
        yield Figure(
            f"{name}_ratio",
            f"{other} / poller",
            theirs and theirs / ours.total_ms,
            "x",
            at_least=goal,
        )
    yield Figure("others_core", "CPU of all other processes", _others(ours.used), "% of a core")


def _others(used: Used) -> float:
    """Return the CPU of all other processes, which include the agents."""
    return 100 * used.others_s / used.seconds


def _grid(costs: Mapping[str, Cost]) -> Grid:
    every, least = list(costs.values()), costs[OURS].total_ms
    roles = dict.fromkeys(role for cost in every for role in cost.role_ms)
    rows: list[Row] = [
        ("CPU of a poll", "ms", [cost.total_ms for cost in every]),
        *((f"  {role}", "ms", [cost.role_ms.get(role) for cost in every]) for role in roles),
        ("times poller's", "x", [cost.total_ms / least for cost in every]),
        ("polls of one core", "/s", [1000 / cost.total_ms for cost in every]),
        ("lateness, 99 %", "ms", [quantile.of(cost.late, 0.99) for cost in every]),
        *(
            (f"memory of {role}", "MB", [cost.used.ended_mb.get(role) for cost in every])
            for role in roles
        ),
        ("samples of a poll", "", [cost.samples for cost in every]),
        ("polls measured", "", [cost.polls for cost in every]),
        ("polls a second", "/s", [cost.polls / cost.used.seconds for cost in every]),
    ]
    return Grid(list(costs), rows)


def _notes(size: Size, costs: Mapping[str, Cost]) -> Iterator[str]:
    yield (
        f"{size.devices:,} devices at {size.interval_s:g} s; "
        f"the obvious design had {size.obvious_devices:,} of them"
    )
    yield "lateness of poller: from slot to start; of the obvious design: beyond the interval since"
    yield "the previous poll; of the exporter: of the requests."
    yield "The exporter schedules and stores nothing: Prometheus does."
    wanted, did = (
        size.obvious_devices / size.interval_s,
        costs[OBVIOUS].polls / costs[OBVIOUS].used.seconds,
    )
    if did < KEPT_UP * wanted:
        yield f"the obvious design did not keep up: {did:.1f} polls a second of {wanted:.1f}"
    if EXPORTER not in costs:
        yield f"{EXPORTER}: not measured, as it is not installed ({exporter.HINT})"


SECTION = Section(
    asks="what does a poll cost, against the obvious design and snmp_exporter?",
    sizes={
        "full": Size(2_000, 10, 60, obvious_devices=250, obvious_s=60, exporter_s=30),
        "small": Size(384, 3, 8, obvious_devices=45, obvious_s=6, exporter_s=4),
        "tiny": Size(40, 2, 2, obvious_devices=10, obvious_s=2, exporter_s=1),
    },
    run=run,
)
