"""`poller up` beside its files: the database and the data of the embedded server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from poller import errors
from poller.bootstrap import Services
from poller.cli.output.log_lines import LogLines
from poller.cli.up import embedded_server
from poller.cli.up.local_cluster import LocalCluster
from poller.cli.up.process_supervisor import any_role
from poller.settings import Settings


def test_a_database_that_is_deleted_stops_everything(services: Services) -> None:
    """Going on would mean to poll into a file that is gone."""
    cluster = LocalCluster(services.settings, LogLines(to_stderr=True))
    assert services.settings.home.joinpath("poller.db").stat().st_size > 0
    services.settings.home.joinpath("poller.db").unlink()
    with pytest.raises(errors.StoreUnavailable, match="was deleted under a running poller"):
        cluster._watch(services, seconds=30)


@pytest.fixture
def cluster(home: Path) -> Iterator[LocalCluster]:
    made = LocalCluster(Settings(), LogLines(to_stderr=True))
    yield made
    made.supervisor.kill(any_role)


def start(cluster: LocalCluster, folder: Path) -> redis.Redis:
    return redis.Redis.from_url(cluster._start_server(folder), decode_responses=True)


@pytest.fixture
def folder(cluster: LocalCluster, tmp_path: Path) -> Path:
    """The folder of an embedded server that has stored a thousand keys and ended."""
    folder = tmp_path / "valkey"
    client = start(cluster, folder)
    client.mset({f"key{number}": "x" * 50 for number in range(1_000)})
    client.set("last", "1")
    client.config_set("appendfsync", "always")
    client.set("flushed", "1")
    cluster.supervisor.stop(any_role, 5.0)
    cluster.supervisor.kill(any_role)
    return folder


def overwrite(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + 50] = b"\xff" * 50
    path.write_bytes(content)


def into_a_directory(path: Path) -> None:
    """A file that the server cannot read, also when the test runs as root."""
    path.unlink()
    path.mkdir()


_DAMAGES: dict[str, Callable[[Path], None]] = {
    "changed in the middle": lambda data: overwrite(next(data.glob("*.incr.aof")), 20_000),
    "changed at the start": lambda data: overwrite(next(data.glob("*.base.rdb")), 0),
    "an unreadable part": lambda data: into_a_directory(next(data.glob("*.incr.aof"))),
    "a missing part": lambda data: next(data.glob("*.incr.aof")).unlink(),
    "an empty manifest": lambda data: os.truncate(next(data.glob("*.manifest")), 0),
    "another manifest": lambda data: overwrite(next(data.glob("*.manifest")), 0),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_damaged_data_of_the_embedded_server_is_set_aside(
    cluster: LocalCluster, folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """The server starts empty, the old files keep their content, and a line says where they are."""
    notes: list[str] = []
    monkeypatch.setattr(cluster, "_note", notes.append)
    _DAMAGES[damage](folder / "appendonlydir")
    client = start(cluster, folder)
    assert client.dbsize() == 0
    [aside] = folder.glob("appendonlydir.damaged-*")
    assert any(aside.iterdir())
    [note] = notes
    assert f"set aside as {aside}: starting with an empty board" in note


def test_a_cut_end_of_the_data_costs_the_last_command_only(
    cluster: LocalCluster, folder: Path
) -> None:
    """A power cut leaves half a command at the end; nothing is set aside."""
    file = next((folder / "appendonlydir").glob("*.incr.aof"))
    os.truncate(file, file.stat().st_size - 5)
    assert start(cluster, folder).dbsize() == 1_001
    assert list(folder.glob("*.damaged-*")) == []


def test_a_server_that_ends_for_another_reason_keeps_its_data(
    cluster: LocalCluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own last line is the reason, not "connection refused"."""
    configuration = embedded_server._configuration

    def broken(*arguments: object) -> str:
        return configuration(*arguments) + "no-such-setting 1\n"  # type: ignore[arg-type]

    monkeypatch.setattr(embedded_server, "_configuration", broken)
    with pytest.raises(errors.StoreUnavailable, match="ended at its start") as caught:
        cluster._start_server(folder)
    assert "Bad directive" in caught.value.cause
    assert (folder / "appendonlydir").exists()
    shutil.rmtree(folder)
