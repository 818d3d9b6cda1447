"""What does a scrape of `/snmp` cost, answered from the last poll, beside snmp_exporter's scrape?

Both are scraped over HTTP for the same simulated agents: first at the rate of the polls, so that
nearly every scrape gets a poll that nobody scraped before, then as fast as each of them answers. At
a low rate a process pays for its wake-ups, which a busy machine makes expensive. The CPU of the
polls is not counted: the platform polls anyway (section `cost`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import agents, cluster, exporter
from benchmarks.agents import PollRequest
from benchmarks.exporter import Exporter, Measured
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from poller import errors
from poller.cli.up import listen_ports
from poller.sim.fleet import SimDevice
from poller.sim.sim_process import simulated

TIMES = 20.0
#: Scrapes a second that no candidate reaches.
FULL_SPEED = 1e6
#: Full speed is measured for this part of the time.
BUSY_SHARE = 4
_READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    interval_s: float  # of polls and scrapes
    measure_s: float


def run(size: Size, stage: Stage) -> Findings:
    fleet = agents.devices(size.devices)
    addresses = [device.address for device in fleet]
    per_s = size.devices / size.interval_s
    with simulated(fleet) as simulator:
        agents.store(stage.services, fleet, simulator.snmp, PollRequest(size.interval_s))
        port = listen_ports.free_port()
        ours = cluster.start(stage)
        web = stage.start("web", ["-m", "poller", "web"], POLLER_WEB_PORT=str(port))
        ours.steady(size.devices, size.interval_s, rounds=0)  # two rounds of scrapes follow
        ourselves = Exporter(web.pid, port, simulator.snmp)
        _ready(ourselves, fleet[0])
        samples, _ = ourselves.scrape(fleet[0].address)
        measured = ourselves.measure(addresses, per_s, size.measure_s, rounds=2)
        busy = ourselves.measure(addresses, FULL_SPEED, size.measure_s / BUSY_SHARE)
        ours.stop()
        theirs = their_busy = None
        if exporter.installed():
            with exporter.running(stage.home, simulator.snmp) as other:
                theirs = other.measure(addresses, per_s, size.measure_s)
                their_busy = other.measure(addresses, FULL_SPEED, size.measure_s / BUSY_SHARE)
    figures = [
        Figure("samples", "samples of a scrape", len(samples), ""),
        *_figures("", f"at {per_s:g} a second", measured, theirs),
        *_figures("busy_", "at full speed", busy, their_busy, TIMES),
    ]
    notes = [f"{size.devices:,} devices, scraped and polled every {size.interval_s:g} s"]
    if theirs is None:
        notes.append(f"snmp_exporter: not measured, as it is not installed ({exporter.HINT})")
    return Findings(figures, notes=notes)


def _ready(ourselves: Exporter, device: SimDevice) -> None:
    def answers() -> bool:
        try:
            return bool(ourselves.scrape(device.address))
        except (OSError, errors.StoreUnavailable):
            return False

    cluster.until("starting the web role", 1, answers, _READY_S)


def _figures(
    prefix: str, when: str, ours: Measured, theirs: Measured | None, goal: float | None = None
) -> Iterator[Figure]:
    ours_ms = _cpu_ms(ours)
    theirs_ms = _cpu_ms(theirs) if theirs is not None else None
    yield Figure(f"{prefix}scrape_ms", f"CPU of a scrape {when}, poller", ours_ms, "ms")
    yield Figure(f"{prefix}exporter_ms", f"CPU of a scrape {when}, exporter", theirs_ms, "ms")
    ratio = theirs_ms and theirs_ms / ours_ms
    yield Figure(f"{prefix}ratio", f"exporter / poller {when}", ratio, "x", at_least=goal)


def _cpu_ms(measured: Measured) -> float:
    return sum(measured.used.cpu_s.values()) / max(1, measured.polls) * 1000


SECTION = Section(
    asks="what does a scrape of /snmp cost, answered from the last poll, beside snmp_exporter?",
    sizes={
        "full": Size(4_000, 20.0, 60.0),
        "small": Size(100, 5.0, 10.0),
        "tiny": Size(20, 5.0, 5.0),
    },
    run=run,
)
