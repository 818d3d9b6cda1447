"""The simulated fleet in a child process, for tests and benchmarks: ready when entered, gone when left.

The child ends when its standard input does, so it never outlives a parent that was killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from poller import errors
from poller.sim import serve
from poller.sim.fleet import SimDevice
from poller.sim.serve import Ports, Simulator

_STOP_SECONDS = 10.0


class Running(Ports):
    """The ports of a fleet in a child process, and a way to cut its uplinks."""

    child: subprocess.Popen[str]

    def darken(self, *sites: str) -> None:
        """These sites, and no others, fall silent; without a name, all answer again. Done when it returns."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(sites) + "\n")
        self.child.stdin.flush()
        if not self.child.stdout.readline():
            raise RuntimeError(f"the simulator has ended (exit code {self.child.wait()})")


@contextlib.contextmanager
def simulated(devices: Sequence[SimDevice], snmp_port: int = 0, routeros_port: int = 0) -> Iterator[Running]:
    """Run the fleet in a child process and yield its ports once it answers. Raises PortInUse."""
    child = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield _start(child, devices, snmp_port, routeros_port)
    finally:
        _stop(child)


def _start(child: subprocess.Popen[str], devices: Sequence[SimDevice], snmp_port: int, routeros_port: int) -> Running:
    assert child.stdin is not None
    assert child.stdout is not None
    order = {
        "snmp_port": snmp_port,
        "routeros_port": routeros_port,
        "devices": [dataclasses.asdict(device) for device in devices],
    }
    with contextlib.suppress(BrokenPipeError):  # it died: the missing answer below says so
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
        serve.run(
            fleet,
            order["snmp_port"],
            order["routeros_port"],
            ready=lambda ports: print(json.dumps({"ports": ports}), flush=True),
            lifeline=sys.stdin.fileno(),
            obey=_obey,
        )
    except errors.PortInUse as error:
        print(json.dumps({"in_use": error.args}), flush=True)


def _obey(simulator: Simulator, line: bytes) -> None:
    simulator.darken(json.loads(line))
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    _child()
