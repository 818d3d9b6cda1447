"""Two outages in a fleet, while everything is killed: pages are counted at real receivers.

    python -m tests.storm_alerts [--devices 5000] [--far 2000] [--behind 500] [--interval 60]
                                 [--database postgresql] [--kills leader worker web database]

A site of `--far` devices goes dark while the switch dies through which `--behind` devices of
another site are reached. Then both come back, but for one device behind the switch. Beats, workers,
web, the database, Valkey and the devices are real processes; Alertmanager, a mail server and an
HTTP receiver that fails and hangs take the notices. The exit status is 1 unless each outage was
told once and ended once at each receiver. Loopback only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests import conftest
from tests.acceptance import alert_storm
from tests.acceptance.alert_storm import Size, Storm
from tests.acceptance.postgres import Postgres
from tests.integration.store_servers import free_port

KILLS = ("leader", "worker", "web", "database")


def _step(name: str, started_mono: float, storm: Storm) -> None:
    seconds = time.monotonic() - started_mono
    firing, ended = storm.told.alerts("firing"), storm.told.alerts("resolved")
    print(f"{seconds:6.0f} s  {name}")
    print(f"          told: {_counted(firing)}; over: {_counted(ended)}; {len(storm.open())} open")


def _counted(told: Counter[str]) -> str:
    return ", ".join(f"{number} x {name}" for name, number in sorted(told.items())) or "nothing"


def run(size: Size, directory: Path, database: Postgres | None) -> bool:
    """Run the storm and say what it found. Returns whether every count is right."""
    started_mono = time.monotonic()
    with alert_storm.storm(size, directory, database) as storm:
        if "web" in size.kills:
            storm.start_web(free_port())
        _step("every device was polled", started_mono, storm)
        storm.begins()
        _step("both outages are told", started_mono, storm)
        storm.lasts()
        two = dict.fromkeys(storm.expected, 1)
        are_two = storm.told.alerts("firing") == two and not storm.told.alerts("resolved")
        active = storm.told.active()
        _step("both last", started_mono, storm)
        storm.ends()
        _step("everything is back", started_mono, storm)
        three = {**two, f"device-unreachable {storm.stuck}": 1}
        checks = {
            "two pages while two outages last": are_two,
            "three pages in all": storm.told.alerts("firing") == three,
            "three recoveries in all": storm.told.alerts("resolved") == three,
            "a mail for each notice": storm.told.mails() == len(storm.told.mood.taken),
            "no device is lost": storm.is_sound(),
        }
        if storm.told.alertmanager is not None:
            checks["Alertmanager showed the same"] = active == set(two)
        for what, is_right in checks.items():
            print(f"  {'yes' if is_right else 'NO '}  {what}")
        repeats = len(storm.told.mood.bodies) - len(storm.told.mood.taken)
        print(f"  {len(storm.told.mood.taken)} notices, {repeats} repeats with the same key")
        return all(checks.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storm_alerts")
    parser.add_argument("--devices", type=int, default=5000)
    parser.add_argument("--far", type=int, default=2000)
    parser.add_argument("--behind", type=int, default=500)
    parser.add_argument("--interval", type=float, default=60.0)
    parser.add_argument("--patience", type=float, default=600.0)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--kills", nargs="*", choices=KILLS, default=list(KILLS))
    arguments = parser.parse_args()
    if 1 + arguments.behind * 5 // 2 + arguments.far > arguments.devices:
        parser.error("--devices: the far site and two and a half times --behind do not fit")
    if "database" in arguments.kills and arguments.database == "sqlite":
        parser.error("--kills: database needs --database postgresql")
    conftest.READY_WITHIN_S = 120.0
    size = Size(
        arguments.devices,
        arguments.far,
        arguments.behind,
        arguments.interval,
        arguments.patience,
        arguments.kills,
    )
    database = Postgres() if arguments.database == "postgresql" else None
    try:
        if database is not None:
            database.start()
        with tempfile.TemporaryDirectory(prefix="poller-storm-") as directory:
            return 0 if run(size, Path(directory), database) else 1
    finally:
        if database is not None:
            database.remove()


if __name__ == "__main__":
    sys.exit(main())
