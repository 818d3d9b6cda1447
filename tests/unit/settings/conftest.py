"""A working directory and an environment without settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("POLLER_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
