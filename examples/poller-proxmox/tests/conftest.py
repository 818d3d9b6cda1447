"""Fixtures: a fake Proxmox VE and a fake Proxmox Backup Server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fake


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[fake.FakeServer]:
    with fake.serving(tmp_path, fake.VE, fake.VE_HEADER) as server:
        yield server


@pytest.fixture
def backup_server(tmp_path: Path) -> Iterator[fake.FakeServer]:
    with fake.serving(tmp_path, fake.BACKUP, fake.BACKUP_HEADER) as server:
        yield server
