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
from poller.sim.serve import Ports

_STOP_SECONDS = 10.0


@contextlib.contextmanager
def simulated(devices: Sequence[SimDevice], snmp_port: int = 0, routeros_port: int = 0) -> Iterator[Ports]:
    """Run the fleet in a child process and yield its ports once it answers. Raises PortInUse."""
    child = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield _start(child, devices, snmp_port, routeros_port)
    finally:
        _stop(child)


def _start(child: subprocess.Popen[str], devices: Sequence[SimDevice], snmp_port: int, routeros_port: int) -> Ports:
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
        return Ports(*answer["ports"])
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
        )
    except errors.PortInUse as error:
        print(json.dumps({"in_use": error.args}), flush=True)


if __name__ == "__main__":
    _child()
