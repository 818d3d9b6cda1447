"""Every living worker has a spool directory of its own, and the dead ones' are inherited once."""

from __future__ import annotations

import fcntl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from poller.workers.results.spool_dir import SpoolHome


def left_behind(home: Path, worker: str, name: str, destination: str = "ledger") -> Path:
    """A file of a worker that is no more."""
    directory = home / "spool" / worker / destination
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(worker)
    return path


def test_two_processes_of_one_name_do_not_share(tmp_path: Path) -> None:
    """Children of a prefork worker have the same name; each finds a directory nobody holds."""
    homes = [SpoolHome(tmp_path, "w@host") for _ in range(3)]
    places = [home.place("ledger") for home in homes]
    assert [place.parent.name for place in places] == ["w@host", "w@host~2", "w@host~3"]
    assert [home.place("ledger") for home in homes] == places


def test_a_restarted_worker_has_the_directory_it_had(tmp_path: Path) -> None:
    """The lock ends with its process, however that ends."""
    code = "import sys, os, pathlib, poller.workers.results.spool_dir as s; "
    code += "print(s.SpoolHome(pathlib.Path(sys.argv[1]), 'w@host').place('ledger'), flush=True); os.kill(os.getpid(), 9)"
    died = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )
    assert died.returncode == -9
    assert died.stdout.strip() == str(SpoolHome(tmp_path, "w@host").place("ledger"))


@pytest.mark.parametrize("runner", ["..", "", "a/b@c", "x" * 300 + "@h", "naïve@host", "%h\0"])
def test_no_name_leads_out_of_the_directory(tmp_path: Path, runner: str) -> None:
    """Worker names are chosen by people."""
    place = SpoolHome(tmp_path, runner).place("ledger")
    assert place.parent.parent == tmp_path / "spool"
    assert place.resolve().is_relative_to((tmp_path / "spool").resolve())
    assert place != tmp_path / "spool"


def test_what_dead_workers_left_is_inherited(tmp_path: Path) -> None:
    """Only for destinations we have, only from the dead, and nothing is written over."""
    alive = SpoolHome(tmp_path, "alive@host")
    alive.place("ledger").joinpath("1.rounds").write_text("alive")
    left_behind(tmp_path, "dead@host", "1.rounds")
    left_behind(tmp_path, "dead@host", "2.rounds")
    left_behind(tmp_path, "late@host", "2.rounds")
    left_behind(tmp_path, "late@host", "3.damaged")
    foreign = left_behind(tmp_path, "late@host", "1.rounds", "sink-gone")
    mine = SpoolHome(tmp_path, "me@host")
    mine.adopt(["ledger", "sink-sql"], 1_000)
    inherited = sorted((path.name, path.read_text()) for path in mine.place("ledger").iterdir())
    assert inherited == [
        ("1.rounds", "dead@host"),
        ("2.rounds", "dead@host"),
        ("3.rounds", "late@host"),
    ]
    assert alive.place("ledger").joinpath("1.rounds").read_text() == "alive"
    assert foreign.exists()


def test_an_inheritance_that_does_not_fit_is_left_to_the_next(tmp_path: Path) -> None:
    """Four workers of a host died: the first one back does not take everything, only to drop it."""
    for number in range(1, 5):
        left_behind(tmp_path, f"w{number}@host", f"{number}.rounds")
    size = len("w1@host")
    for name, expected in (
        ("a@host", {"1.rounds", "2.rounds"}),
        ("b@host", {"3.rounds", "4.rounds"}),
    ):
        home = SpoolHome(tmp_path, name)
        home.adopt(["ledger"], size * 2 + 1)
        assert {path.name for path in home.place("ledger").iterdir()} == expected


def test_an_empty_house_is_torn_down(tmp_path: Path) -> None:
    """Names of containers never come back; but what a person should look at stays, and so does a living worker's."""
    alive = SpoolHome(tmp_path, "alive@host").place("ledger")
    (tmp_path / "spool" / "empty@host" / "ledger").mkdir(parents=True)
    left_behind(tmp_path, "heard@host", "1.rounds")
    odd = left_behind(tmp_path, "odd@host", "1.damaged")
    SpoolHome(tmp_path, "me@host").adopt(["ledger"], 1_000)
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == [
        "alive@host",
        "me@host",
        "odd@host",
    ]
    assert odd.exists()
    assert alive.exists()


def test_a_lock_on_a_removed_file_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last holder removes the directory while we are about to take it: we take another, not none."""
    real = fcntl.flock

    def removed_meanwhile(lock: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / "spool" / "w@host" / "lock").unlink()
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    first, second = (
        SpoolHome(tmp_path, "w@host").place("ledger"),
        SpoolHome(tmp_path, "w@host").place("ledger"),
    )
    assert first != second


def test_nobody_else_may_look(tmp_path: Path) -> None:
    """Directories and locks are the owner's."""
    place = SpoolHome(tmp_path, "w@host").place("ledger")
    made = [place, place.parent, place.parent.parent, place.parent / "lock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700, 0o700, 0o700, 0o600]


def test_a_home_that_cannot_be_used_is_said_and_survived(tmp_path: Path) -> None:
    """A file where the directory should be: whoever needs it gets an OSError, adopting does not."""
    (tmp_path / "spool").write_text("")
    home = SpoolHome(tmp_path, "w@host")
    home.adopt(["ledger"], 1_000)
    with pytest.raises(OSError):
        home.place("ledger")
