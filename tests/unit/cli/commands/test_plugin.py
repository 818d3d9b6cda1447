"""`poller plugin new`: the files it writes, the names it refuses, and existing files it keeps."""

from __future__ import annotations

import json
import shlex
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from poller import plugins
from poller.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return (main.run(["plugin", "new", *arguments]), *capsys.readouterr())


def test_a_package_is_written_and_the_next_command_printed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The package has six files and one entry point."""
    code, out, err = run(capsys, "acme-olt2")
    assert (code, out) == (0, "wrote 6 files to acme-olt2\n")
    assert err == "next: pip install ./acme-olt2\n"
    files = sorted(
        str(path.relative_to(here / "acme-olt2")) for path in here.rglob("*") if path.is_file()
    )
    assert files == [
        ".gitignore",
        "README.md",
        "poller_acme_olt2/__init__.py",
        "poller_acme_olt2/collector.py",
        "pyproject.toml",
        "tests/test_acme_olt2.py",
    ]
    project = tomllib.loads((here / "acme-olt2" / "pyproject.toml").read_text())
    assert project["project"]["name"] == "poller-acme-olt2"
    assert project["project"]["entry-points"]["poller.collectors"] == {
        "acme-olt2": "poller_acme_olt2:AcmeOlt2"
    }
    assert "{{" not in "".join(path.read_text() for path in here.rglob("*") if path.is_file())


def test_a_package_with_a_job_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--job: the package has six files and an entry point of jobs."""
    code, out, _ = run(capsys, "site-report", "--job", "--json")
    said = json.loads(out)
    assert (code, said["kind"]) == (0, "job")
    assert "poller_site_report/job.py" in said["files"]
    project = tomllib.loads((here / "site-report" / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {"poller.jobs": {"site-report": "poller_site_report:run"}}
    assert project["description"] == "A job for poller: site-report"
    for path in here.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_the_name_of_an_installed_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A collector may have the name of a job."""
    point = EntryPoint("snmp", "acme:run", "poller.jobs")
    monkeypatch.setattr(
        plugins, "points", lambda group: ([point] if group == "poller.jobs" else [], [])
    )
    code, _, err = run(capsys, "snmp", "--job")
    assert code == 2
    assert 'there is a job named "snmp" already' in err
    assert "poller jobs" in err
    assert run(capsys, "snmp")[0] == 0


def test_a_bad_name_of_a_job_is_refused_with_a_good_one(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint is the whole command."""
    code, _, err = run(capsys, "My Job", "--job")
    assert code == 2
    assert '"My Job" cannot be the name of a job' in err
    assert "try: poller plugin new my-job --job\n" in err
    assert list(here.iterdir()) == []


def test_another_folder_may_be_given(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--path chooses the folder."""
    code, out, _ = run(capsys, "olt", "--path", "src/mine", "--json")
    assert code == 0
    said = json.loads(out)
    assert (said["schema"], said["path"], len(said["files"])) == (
        "poller.plugin.new/1",
        "src/mine",
        6,
    )
    assert (here / "src" / "mine" / "pyproject.toml").is_file()


@pytest.mark.parametrize("place", ["mine", "./mine", "src/mine", "my own"])
def test_the_next_command_installs_what_was_written(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a slash pip would install a package of that name from the index."""
    _, _, err = run(capsys, "olt", "--path", place)
    assert err == f"next: pip install {shlex.quote(f'./{Path(place)}')}\n"


def test_nothing_that_exists_is_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An existing empty directory is refused, too."""
    (here / "olt").mkdir()
    (here / "file").write_text("mine")
    for arguments in (["olt"], ["other", "--path", "olt"], ["other", "--path", "file"]):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert "exists already; nothing was written" in err
    assert sorted(path.name for path in here.iterdir()) == ["file", "olt"]
    assert list((here / "olt").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("OLT", "olt"),
        ("2olt", "olt"),
        ("olt!", "olt"),
        ("a b", "a-b"),
        ("../x", "x"),
        ("", "olt"),
        ("-x", None),
        ("x" * 41, "x" * 40),
        ("olt_", "olt"),
        ("é", "olt"),
        ("a.b", "a-b"),
        ("a\nb", "a-b"),
    ],
)
def test_a_bad_name_is_refused_with_a_good_one(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, nearest: str | None
) -> None:
    """The hint has the nearest usable name, and no file is written."""
    code, _, err = run(capsys, name)
    assert code == 2
    assert nearest is None or f"try: poller plugin new {nearest}\n" in err
    assert list(here.iterdir()) == []


def test_the_name_of_an_installed_collector_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file is written."""
    code, _, err = run(capsys, "snmp")
    assert code == 2
    assert 'there is a collector named "snmp" already' in err
    assert list(here.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The error quotes the path."""
    code, _, err = run(capsys, "olt", "--path", "/proc/nowhere/olt")
    assert code == 2
    assert "/proc/nowhere/olt" in err


@pytest.mark.parametrize(
    "name", ["none", "true", "false", "class", "login", "options", "api", "test"]
)
def test_python_keywords_make_a_package_that_can_be_imported(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """`class None:` would be a syntax error."""
    assert run(capsys, name)[0] == 0
    for path in here.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
