"""Sources of settings: their order, homes and files above, a running `poller up`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from poller import errors, settings
from poller.cli.up import local_cluster
from poller.settings import setting_sources


def test_environment_beats_file_beats_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each value has the name of its source."""
    (tmp_path / "poller.toml").write_text(
        'batch_size = 32\ntick_s = 1.0\nsinks = ["sql", "stream"]\n'
    )
    monkeypatch.setenv("POLLER_BATCH_SIZE", "16")
    loaded = settings.load()
    assert (loaded.batch_size, loaded.tick_s, loaded.max_queue, loaded.sinks) == (
        16,
        1.0,
        settings.Settings.model_fields["max_queue"].default,
        ("sql", "stream"),
    )
    where = settings.origins(os.environ)
    assert where["batch_size"] == "environment POLLER_BATCH_SIZE"
    assert where["tick_s"] == "poller.toml, line 2"
    assert where["max_queue"] == "default"


def test_an_unknown_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A misspelt variable is an error with a suggestion."""
    monkeypatch.setenv("POLLER_BATCHSIZE", "16")
    with pytest.raises(errors.InvalidSetting, match="POLLER_BATCHSIZE") as caught:
        settings.load()
    assert "POLLER_BATCH_SIZE" in caught.value.hint


def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "poller.toml").write_text("batchsize = 3\n")
    with pytest.raises(
        errors.InvalidSetting, match=r'poller.toml: unknown key "batchsize"'
    ) as caught:
        settings.load()
    assert "batch_size" in caught.value.hint


def test_a_broken_or_missing_file_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The default file may be absent; a file named by POLLER_CONFIG may not."""
    monkeypatch.setenv("POLLER_CONFIG", str(tmp_path / "no.toml"))
    with pytest.raises(errors.InvalidSetting, match=r"no\.toml"):
        settings.load()
    (tmp_path / "no.toml").write_text("= what")
    with pytest.raises(errors.InvalidSetting, match=r"no\.toml"):
        settings.load()


def test_a_secret_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Container platforms provide secrets as files."""
    (tmp_path / "url").write_text("redis://:s3cret@cache:6379/0\n")
    monkeypatch.setenv("POLLER_REDIS_URL_FILE", str(tmp_path / "url"))
    loaded = settings.load()
    assert loaded.broker_url == "redis://:s3cret@cache:6379/0"
    assert "s3cret" not in repr(loaded)


def test_the_settings_of_a_running_poller_up_are_used_and_of_a_dead_one_not(tmp_path: Path) -> None:
    """A second terminal needs no variables while `poller up` runs."""
    home = tmp_path / ".poller"
    home.mkdir()
    run = {"pid": os.getpid(), "settings": {"redis_url": "redis://127.0.0.1:1234/0"}}
    (home / setting_sources.RUN_FILE).write_text(json.dumps(run))
    assert settings.load().broker_url == "redis://127.0.0.1:1234/0"
    (home / setting_sources.RUN_FILE).write_text(json.dumps({**run, "pid": 2**22 + 1}))
    assert settings.load().broker_url == "redis://127.0.0.1:6379/0"


def test_a_home_in_a_directory_above_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The nearest home is used, as git finds its repository, with its running `poller up`."""
    (tmp_path / ".poller").mkdir()
    run = {"pid": os.getpid(), "settings": {"redis_url": "redis://127.0.0.1:1234/0"}}
    (tmp_path / ".poller" / setting_sources.RUN_FILE).write_text(json.dumps(run))
    _enter_subdirectory(monkeypatch, tmp_path)
    loaded = settings.load()
    assert (loaded.home, loaded.broker_url) == (tmp_path / ".poller", "redis://127.0.0.1:1234/0")
    assert settings.origins(os.environ)["home"] == f"found in {tmp_path}"
    (tmp_path / "a" / ".poller").mkdir()
    assert settings.load().home == tmp_path / "a" / ".poller"
    Path(".poller").mkdir()
    assert settings.load().home == tmp_path / "a" / "b" / ".poller"
    assert settings.origins(os.environ)["home"] == "default"


def test_without_a_home_above_the_home_is_in_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file called .poller is not a home."""
    (tmp_path / ".poller").touch()
    here = _enter_subdirectory(monkeypatch, tmp_path)
    assert settings.load().home == here / ".poller"


def test_a_named_home_is_used_and_nothing_from_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With POLLER_HOME, a poller.toml above is not read either."""
    (tmp_path / ".poller").mkdir()
    (tmp_path / "poller.toml").write_text("batch_size = 7\n")
    here = _enter_subdirectory(monkeypatch, tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("POLLER_HOME", "own")
        assert (settings.load().home, settings.load().batch_size) == (here / "own", 64)
    (here / "poller.toml").write_text('home = "other"\n')
    assert settings.load().home == here / "other"


def test_paths_of_a_file_above_are_relative_to_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Home and database URL of a poller.toml above are resolved from its directory."""
    text = 'home = "data"\ndatabase_url = "sqlite:///some.db"\nbatch_size = 7\n'
    (tmp_path / "poller.toml").write_text(text)
    _enter_subdirectory(monkeypatch, tmp_path)
    loaded = settings.load()
    assert (loaded.home, loaded.batch_size) == (tmp_path / "data", 7)
    assert loaded.sql_url == f"sqlite:///{tmp_path}/some.db"
    assert settings.origins(os.environ)["batch_size"] == f"{tmp_path}/poller.toml, line 3"


def test_children_of_poller_up_read_the_same_file_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They get the home by a variable, so they also get the path of the file."""
    (tmp_path / "poller.toml").write_text("batch_size = 7\n")
    _enter_subdirectory(monkeypatch, tmp_path)
    for name, value in local_cluster._same_settings(settings.load()).items():
        monkeypatch.setenv(name, value)
    loaded = settings.load()
    assert (loaded.home, loaded.batch_size) == (tmp_path / ".poller", 7)


@pytest.mark.parametrize(
    ("name", "hint"), [(".poller", "POLLER_HOME"), ("poller.toml", "POLLER_CONFIG")]
)
def test_a_home_or_file_above_of_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, hint: str
) -> None:
    """Another user could make a /tmp/.poller and choose our servers."""
    path = tmp_path / name
    path.mkdir() if name == ".poller" else path.touch()
    _enter_subdirectory(monkeypatch, tmp_path)
    _give_away(monkeypatch, path)
    with pytest.raises(errors.InvalidSetting, match=f"{name} belongs to another user") as caught:
        settings.load()
    assert f"{hint}={path}" in caught.value.hint


def test_an_unreadable_home_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It does not count as a home without a running `poller up`."""

    def refused(path: Path, *_: object) -> str:
        raise PermissionError if path.name == setting_sources.RUN_FILE else FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setenv("POLLER_HOME", str(tmp_path / "home"))
    with pytest.raises(errors.InvalidSetting, match=r"you may not read \S+/home$"):
        settings.load()


def _enter_subdirectory(monkeypatch: pytest.MonkeyPatch, top: Path) -> Path:
    below = top / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return below


def _give_away(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
