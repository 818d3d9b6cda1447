"""The memory of one worker while hostile routers flood it.

    python -m tests.flood_routeros [--routers 7] [--minutes 10] [--interval 10] [--stop-mb 4096]

Hostile routers accept the login and answer the first command with rows without an end. One real
worker of `poller up` polls them, and some healthy devices. Breakers stay closed, so that the flood
goes on. The memory of the worker is printed every ten seconds. The exit status is 1 if it exceeds
`--stop-mb`, which ends the test, or if a poll of a healthy device fails. Loopback only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HEALTHY = 5
SAMPLE_S = 10.0
START_S = 90.0
#: A login that every hostile router accepts.
SECRET = "flood:flood-s3cret\n"
_DONE = b"\x05!done\x00"
#: Rows of different kinds: many properties, one property, no property at all.
_ROWS = (
    b"\x03!re" + b"".join(bytes((8,)) + b"=k%02d=abc" % n for n in range(20)) + b"\x00",
    b"\x03!re\x05=a=bc\x00",
    b"\x03!re\x00",
)


def serve(ports: list[int], ready: multiprocessing.synchronize.Event) -> None:
    """Accept every login, then send rows for as long as the peer reads them."""
    listeners = [socket.create_server(("127.0.0.1", port), backlog=64) for port in ports]
    ready.set()
    for number, listener in enumerate(listeners):
        row = _ROWS[number % len(_ROWS)]
        threading.Thread(target=_accept, args=(listener, row * 2000), daemon=True).start()
    threading.Event().wait()


def _accept(listener: socket.socket, flood: bytes) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_flood, args=(connection, flood), daemon=True).start()


def _flood(connection: socket.socket, flood: bytes) -> None:
    with connection, contextlib.suppress(OSError):
        connection.recv(4096)
        connection.sendall(_DONE)
        connection.recv(4096)
        while True:
            connection.sendall(flood)


class Up:
    """`poller up` with one worker, in a home of its own."""

    def __init__(self, home: Path) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._environment = kept | {
            "HOME": str(home),
            "POLLER_HOME": str(home / "poller"),
            "POLLER_BREAKER_FAILURES": "1000",
        }
        self._log = (home / "up.log").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "poller", "up", "--workers", "1"],
            env=self._environment,
            cwd=home,
            stdout=self._log,
            stderr=self._log,
        )

    def run(self, *words: str, text: str = "") -> str:
        command = [sys.executable, "-m", "poller", *words]
        done = subprocess.run(
            command,
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"poller {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    def worker(self) -> int:
        """Return the process id of the worker; 0 before it runs."""
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if _parent(process) == self._process.pid:
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    if b"worker" in words:
                        return int(process.name)
        return 0

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def memory_mb(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    return 0


@contextlib.contextmanager
def started(home: Path) -> Iterator[Up]:
    up = Up(home)
    try:
        ends = time.monotonic() + START_S
        while not up.worker():
            if time.monotonic() > ends:
                raise RuntimeError((home / "up.log").read_text()[-2000:])
            time.sleep(0.5)
        yield up
    finally:
        up.stop()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def add_targets(up: Up, ports: list[int], interval_s: float) -> None:
    up.run("credential", "add", "flood", "--kind", "login", text=SECRET)
    schedule = ["--interval", f"{interval_s:g}s", "--timeout", "8s"]
    for number, port in enumerate(ports):
        words = ["--collector", "routeros", "--credential", "flood", "-o", "tls=false"]
        up.run("device", "add", f"hostile{number}", f"127.0.0.1:{port}", *words, *schedule)
    for number in range(HEALTHY):
        words = ["--collector", "ping", "-o", "method=tcp", "-o", f"port={ports[0]}"]
        up.run("device", "add", f"healthy{number}", f"127.0.1.{number + 1}", *words, *schedule)


def watch(up: Up, minutes: float, stop_mb: int) -> tuple[int, int]:
    """Print the worker's memory until the end.

    Return the number of worker processes, which a memory limit or a watchdog may replace, and the
    highest memory of any of them.
    """
    ends_mono = time.monotonic() + minutes * 60
    printed_mono = 0.0
    highest = 0
    workers: set[int] = set()
    while (now_mono := time.monotonic()) < ends_mono and highest <= stop_mb:
        worker = up.worker()
        now_mb = memory_mb(worker)
        highest = max(highest, now_mb)
        workers |= {worker} if worker else set()
        if now_mono - printed_mono >= SAMPLE_S:
            printed_mono = now_mono
            passed_s = minutes * 60 - (ends_mono - now_mono)
            print(f"{passed_s:5.0f} s {now_mb:6d} MB (at most {highest} MB)", flush=True)
        time.sleep(0.2)  # a worker may grow by a gigabyte in a few seconds
    return len(workers), highest


def outcomes(up: Up) -> dict[str, Counter[str]]:
    """Count the outcomes of the last thousand polls."""
    counts = {"hostile": Counter[str](), "healthy": Counter[str]()}
    for run in json.loads(up.run("runs", "--json", "--limit", "1000"))["items"]:
        counts[run["device"][:7]][run["error_code"] or run["outcome"]] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routers", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--interval", type=float, default=10, help="seconds between polls")
    parser.add_argument("--stop-mb", type=int, default=4096)
    arguments = parser.parse_args()

    ports = free_ports(arguments.routers)
    ready = multiprocessing.Event()
    server = multiprocessing.Process(target=serve, args=(ports, ready), daemon=True)
    server.start()
    ready.wait(10)
    with tempfile.TemporaryDirectory() as directory, started(Path(directory)) as up:
        time.sleep(SAMPLE_S)
        idle = memory_mb(up.worker())
        add_targets(up, ports, arguments.interval)
        workers, highest = watch(up, arguments.minutes, arguments.stop_mb)
        failed = highest > arguments.stop_mb
        if not failed:
            counts = outcomes(up)
            failed = set(counts["healthy"]) != {"ok"}
            print(json.dumps(counts))
    server.terminate()
    print(f"worker: {idle} MB idle, {highest} MB at most; {workers} processes one after the other")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
