"""Every live process has a spool directory of its own; those of dead workers are adopted."""

from __future__ import annotations

import fcntl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from poller.workers.results.spool_dir import SpoolDirectory


def left_behind(home: Path, worker: str, name: str, destination: str = "ledger") -> Path:
    """Leave a file of a dead worker."""
    directory = home / "spool" / worker / destination
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(worker)
    return path


def test_processes_of_one_name_have_different_directories(tmp_path: Path) -> None:
    """Children of a prefork worker have the same name."""
    directories = [SpoolDirectory(tmp_path, "w@host") for _ in range(3)]
    paths = [directory.path_for("ledger") for directory in directories]
    assert [path.parent.name for path in paths] == ["w@host", "w@host~2", "w@host~3"]
    assert [directory.path_for("ledger") for directory in directories] == paths


def test_a_restarted_worker_gets_its_directory_again(tmp_path: Path) -> None:
    """The lock ends with the process, also when it is killed."""
    code = (
        "import os, pathlib, sys\n"
        "from poller.workers.results.spool_dir import SpoolDirectory\n"
        "directory = SpoolDirectory(pathlib.Path(sys.argv[1]), 'w@host')\n"
        "print(directory.path_for('ledger'), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )
    assert died.returncode == -9
    assert died.stdout.strip() == str(SpoolDirectory(tmp_path, "w@host").path_for("ledger"))


@pytest.mark.parametrize("runner", ["..", "", "a/b@c", "x" * 300 + "@h", "naïve@host", "%h\0"])
def test_no_worker_name_leads_out_of_the_directory(tmp_path: Path, runner: str) -> None:
    """Worker names are chosen by people."""
    path = SpoolDirectory(tmp_path, runner).path_for("ledger")
    assert path.parent.parent == tmp_path / "spool"
    assert path.resolve().is_relative_to((tmp_path / "spool").resolve())
    assert path != tmp_path / "spool"


def test_the_files_of_dead_workers_are_adopted(tmp_path: Path) -> None:
    """Only files of destinations that exist, only of dead workers, and no file is overwritten."""
    alive = SpoolDirectory(tmp_path, "alive@host")
    alive.path_for("ledger").joinpath("1.rounds").write_text("alive")
    left_behind(tmp_path, "dead@host", "1.rounds")
    left_behind(tmp_path, "dead@host", "2.rounds")
    left_behind(tmp_path, "late@host", "2.rounds")
    left_behind(tmp_path, "late@host", "3.damaged")
    foreign = left_behind(tmp_path, "late@host", "1.rounds", "sink-gone")
    own = SpoolDirectory(tmp_path, "me@host")
    own.adopt(["ledger", "sink-sql"], 1_000)
    adopted = sorted((path.name, path.read_text()) for path in own.path_for("ledger").iterdir())
    assert adopted == [
        ("1.rounds", "dead@host"),
        ("2.rounds", "dead@host"),
        ("3.rounds", "late@host"),
    ]
    assert alive.path_for("ledger").joinpath("1.rounds").read_text() == "alive"
    assert foreign.exists()


def test_polls_for_a_sink_that_is_gone_are_named(tmp_path: Path) -> None:
    """An operator who renamed a sink reads which files wait, and what to do."""
    left_behind(tmp_path, "dead@host", "1.rounds", "sink-gone")
    with structlog.testing.capture_logs() as lines:
        SpoolDirectory(tmp_path, "me@host").adopt(["ledger"], 1_000)
    [line] = [line for line in lines if line["event"] == "spool_of_unknown_sink"]
    assert (line["store"], line["bytes"]) == ("sink-gone", len("dead@host"))


def test_files_beyond_the_limit_are_left_to_the_next_worker(tmp_path: Path) -> None:
    """Four workers of a host died: the first that starts must not adopt files only to drop them."""
    for number in range(1, 5):
        left_behind(tmp_path, f"w{number}@host", f"{number}.rounds")
    size = len("w1@host")
    for name, expected in (
        ("a@host", {"1.rounds", "2.rounds"}),
        ("b@host", {"3.rounds", "4.rounds"}),
    ):
        home = SpoolDirectory(tmp_path, name)
        home.adopt(["ledger"], size * 2 + 1)
        assert {path.name for path in home.path_for("ledger").iterdir()} == expected


def test_an_empty_directory_of_a_dead_worker_is_removed(tmp_path: Path) -> None:
    """Damaged files stay for a person, and so does the directory of a live worker."""
    alive = SpoolDirectory(tmp_path, "alive@host").path_for("ledger")
    (tmp_path / "spool" / "empty@host" / "ledger").mkdir(parents=True)
    left_behind(tmp_path, "heard@host", "1.rounds")
    odd = left_behind(tmp_path, "odd@host", "1.damaged")
    SpoolDirectory(tmp_path, "me@host").adopt(["ledger"], 1_000)
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == [
        "alive@host",
        "me@host",
        "odd@host",
    ]
    assert odd.exists()
    assert alive.exists()


def test_a_lock_on_a_removed_file_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last holder removes the lock file; the process claims another directory."""
    real = fcntl.flock

    def removed_meanwhile(lock: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / "spool" / "w@host" / "lock").unlink()
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    first = SpoolDirectory(tmp_path, "w@host").path_for("ledger")
    second = SpoolDirectory(tmp_path, "w@host").path_for("ledger")
    assert first != second


def test_only_the_owner_may_read_the_directories(tmp_path: Path) -> None:
    """Lock files have the same owner-only mode."""
    path = SpoolDirectory(tmp_path, "w@host").path_for("ledger")
    made = [path, path.parent, path.parent.parent, path.parent / "lock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700, 0o700, 0o700, 0o600]


def test_adopting_survives_a_home_that_cannot_be_used(tmp_path: Path) -> None:
    """There is a file instead of the directory: `path_for` raises OSError, `adopt` does not."""
    (tmp_path / "spool").write_text("")
    home = SpoolDirectory(tmp_path, "w@host")
    home.adopt(["ledger"], 1_000)
    with pytest.raises(OSError):
        home.path_for("ledger")
