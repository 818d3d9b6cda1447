"""The simulated fleet in a child process, for tests and benchmarks.

The child ends at the end of its standard input, so it never outlives a parent that was killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from poller import errors
from poller.sim import fleet_server
from poller.sim.clock import Clock
from poller.sim.fleet import SimDevice
from poller.sim.fleet_server import Ports, Simulator, TlsPorts
from poller.sim.routeros.injected_faults import Accident, Mishap
from poller.sim.routeros.routeros_server import Visits

_STOP_SECONDS = 10.0


class Running(Ports):
    """The ports of a fleet in a child process, and commands that inject faults.

    Each command is complete when it returns.
    """

    child: subprocess.Popen[str]

    def darken(self, *sites: str) -> None:
        """Cut these sites off, and restore all others. Without a site, all sites answer again."""
        self._order("darken", sites)

    def set_clock(self, at: float | None = None, rate: float = 1.0) -> None:
        """Set the devices' clock to `at`, running at `rate`; without `at`, to the wall clock."""
        self._order("set_clock", at, rate)

    def misbehave(self, address: str, mishap: Mishap, **fields: Any) -> None:
        """Inject a fault into the next answer of a router. `fields` are those of `Accident`."""
        self._order("expect", address, dataclasses.asdict(Accident(mishap, **fields)))

    def behave(self, address: str) -> None:
        """Drop the faults of this router that have not happened yet."""
        self._order("forget", address)

    def kick(self, address: str) -> None:
        """Close the sessions of a router in an orderly way."""
        self._order("kick", address)

    def reboot(self, address: str) -> None:
        """Reset the sessions of a router and restart its uptime and counters."""
        self._order("reboot", address)

    def visits(self, address: str) -> Visits:
        """Return the totals of a router since the start."""
        return Visits(*self._order("visits", address))

    def _order(self, what: str, *arguments: Any) -> Any:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps({"order": what, "arguments": arguments}) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"the simulator has ended (exit code {self.child.wait()})")
        answer = json.loads(line)
        if "refused" in answer:
            raise errors.InvalidInput(answer["refused"], hint=answer["hint"])
        return answer["done"]


@contextlib.contextmanager
def simulated(
    devices: Sequence[SimDevice],
    snmp_port: int = 0,
    routeros_port: int = 0,
    tls: TlsPorts | None = None,
    clock: Clock | None = None,
) -> Iterator[Running]:
    """Run the fleet in a child process and yield its ports once it answers. Raises PortInUse."""
    order = {
        "snmp_port": snmp_port,
        "routeros_port": routeros_port,
        "tls": tls,
        "clock": None if clock is None else [clock.at, clock.rate],
        "devices": [dataclasses.asdict(device) for device in devices],
    }
    child = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield _start(child, order)
    finally:
        _stop(child)


def _start(child: subprocess.Popen[str], order: Mapping[str, Any]) -> Running:
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(
        BrokenPipeError
    ):  # the child has ended: its missing answer is handled below
        child.stdin.write(json.dumps(order) + "\n")
        child.stdin.flush()
    answer = json.loads(child.stdout.readline() or "{}")
    if "ports" in answer:
        running = Running(*answer["ports"])
        running.child = child
        return running
    if "in_use" in answer:
        raise errors.PortInUse(*answer["in_use"])
    raise RuntimeError(f"the simulator ended before it was ready (exit code {child.wait()})")


def _stop(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
        child.communicate(timeout=_STOP_SECONDS)  # closes its standard input
    if child.poll() is None:
        child.kill()
        child.wait()


def _child() -> None:
    order = json.loads(sys.stdin.readline())
    fleet = [SimDevice.from_dict(fields) for fields in order["devices"]]
    try:
        fleet_server.run(
            fleet,
            order["snmp_port"],
            order["routeros_port"],
            ready=lambda ports: print(json.dumps({"ports": ports}), flush=True),
            lifeline=sys.stdin.fileno(),
            obey=_obey,
            tls=None if order["tls"] is None else TlsPorts(*order["tls"]),
            clock=None if order["clock"] is None else Clock(*order["clock"]),
        )
    except errors.PortInUse as error:
        print(json.dumps({"in_use": error.args}), flush=True)


def _obey(simulator: Simulator, line: bytes) -> None:
    request = json.loads(line)
    try:
        result = _ORDERS[request["order"]](simulator, *request["arguments"])
        answer = {"done": result}
    except errors.InvalidInput as error:
        answer = {"refused": error.message, "hint": error.hint}
    print(json.dumps(answer), flush=True)


_ORDERS: Mapping[str, Callable[..., Any]] = {
    "darken": Simulator.darken,
    "set_clock": lambda simulator, at, rate: simulator.set_clock(Clock(at, rate)),
    "expect": lambda simulator, address, fields: simulator.expect(
        address, Accident.from_dict(fields)
    ),
    "forget": lambda simulator, address: simulator.routeros.accidents.forget(address),
    "kick": lambda simulator, address: simulator.routeros.kick(address),
    "reboot": lambda simulator, address: simulator.routeros.reboot(address),
    "visits": Simulator.visits,
}


if __name__ == "__main__":
    _child()
