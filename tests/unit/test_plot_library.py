"""The library of plots is taken at build time, and only if it is the one that is pinned."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def build() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(directory: Path, body: bytes) -> None:
    """A package as npm writes it, of another content."""
    with tarfile.open(directory / "uplot-1.6.32.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("package/dist/uPlot.iife.min.js")
        info.size = len(body)
        archive.addfile(info, io.BytesIO(body))


def test_another_package_is_refused(
    build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that sends something else puts nothing into the wheel."""

    def npm(command: list[str], cwd: str, **_: object) -> None:
        assert "uplot@1.6.32" in command
        package(Path(cwd), b"alert(1)")

    monkeypatch.setattr(subprocess, "run", npm)
    with pytest.raises(ValueError, match="another integrity"):
        build.fetch_library(tmp_path)
    assert list(tmp_path.rglob("*")) == []


def test_files_that_are_there_are_not_fetched_again(
    build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is built from files of another stage; a changed file is not taken."""
    bodies = {}
    for name, (place, _) in build.LIBRARY_FILES.items():
        bodies[name] = (place, f"{name} of a test".encode())
    hashes = {
        name: (place, build.hashlib.sha256(body).hexdigest())
        for name, (place, body) in bodies.items()
    }
    monkeypatch.setattr(build, "LIBRARY_FILES", hashes)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("npm was asked"))
    for place, body in bodies.values():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(body)
    assert build.fetch_library(tmp_path) == [place for place, _ in bodies.values()]
