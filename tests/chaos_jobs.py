"""A job every five seconds while leaders or workers are killed, frozen and stopped at random.

    python -m tests.chaos_jobs [--minutes 5] [--victims leader worker] [--database postgresql]
                               [--stores] [--seed 1]

Three beats, two workers and a job that catches up on every plan, all of them real processes. Every
few seconds a victim gets kill -9, SIGTERM or SIGSTOP; it is replaced, or goes on after a while.
`--stores` also empties Redis once, restarts it once, and stops PostgreSQL for ten seconds once. The
exit status is 1 unless each plan has exactly one run, and that run succeeded. Loopback only.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance import job_chaos
from tests.acceptance.job_chaos import Chaos, SteadyCluster, Watch
from tests.acceptance.postgres import Postgres

#: Workers are struck while their handlers run, so that leases are lost.
LENGTH_S = {"leader": 0.2, "worker": 2.0}
OUTAGE_S = 10.0


@contextmanager
def database(kind: str) -> Iterator[Postgres | None]:
    if kind == "sqlite":
        yield None
        return
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def store_faults(
    cluster: SteadyCluster, chaos: Chaos, server: Postgres | None
) -> list[Callable[[], object]]:
    """Faults of the stores, each for one call."""

    def flush() -> None:
        chaos.strikes["Redis emptied"] += 1
        cluster.valkey.client.flushall()

    def restart() -> None:
        chaos.strikes["Redis restarted"] += 1
        cluster.valkey.kill()
        chaos.later(2.0, cluster.valkey.start)

    def stop() -> None:
        assert server is not None
        chaos.strikes[f"PostgreSQL stopped for {OUTAGE_S:g} s"] += 1
        server.stop()
        chaos.later(OUTAGE_S, server.start)

    return [flush, restart, *([stop] if server else [])]


def run(options: argparse.Namespace, directory: Path, server: Postgres | None) -> int:
    length_s = max(LENGTH_S[victim] for victim in options.victims)
    url = server.url if server else ""
    with SteadyCluster(directory, url, length_s=length_s) as cluster:
        for _ in range(3):
            cluster.start_beat()
        for _ in range(2):
            cluster.start_worker()
        cluster.started()
        watch = Watch(cluster)
        chaos = Chaos(cluster, random.Random(options.seed), watch)
        once = store_faults(cluster, chaos, server) if options.stores else []
        chaos.rage(options.minutes * 60, options.victims, once)
        verdict = job_chaos.settle(cluster)
        watch.look(limit=100_000)
        strikes = ", ".join(f"{count} {name}" for name, count in sorted(chaos.strikes.items()))
        print(f"seed {options.seed}: {strikes}")
        print(verdict.text())
        print(f"failures on the way: {dict(watch.codes)}")
        print(f"longest time from the end of a lease to its closing: {watch.longest_stale_ms} ms")
        faults = verdict.faults | (
            {"changed after success": watch.changed} if watch.changed else {}
        )
        for name, value in faults.items():
            print(f"FAULT {name}: {value}")
        return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--victims", nargs="+", choices=("leader", "worker"), default=["leader"])
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--stores", action="store_true", help="strike Redis and PostgreSQL too")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, help="a directory for the logs, which is kept")
    options = parser.parse_args()
    with database(options.database) as server:
        if options.keep:
            options.keep.mkdir(parents=True)
            return run(options, options.keep, server)
        with tempfile.TemporaryDirectory() as directory:
            return run(options, Path(directory), server)


if __name__ == "__main__":
    sys.exit(main())
