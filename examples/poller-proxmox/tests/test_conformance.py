"""Both collectors pass the conformance suite of poller, one line for each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fake
from poller_proxmox import ProxmoxBackup, ProxmoxVe

from poller.collectors.credentials import Token
from poller.testing import conformance


@contextmanager
def cluster() -> Iterator[conformance.Device]:
    with (
        tempfile.TemporaryDirectory() as directory,
        fake.serving(Path(directory), fake.VE, fake.VE_HEADER) as server,
    ):
        yield conformance.Device("127.0.0.1", port=server.port, fingerprint=server.fingerprint)


@contextmanager
def backup_server() -> Iterator[conformance.Device]:
    with (
        tempfile.TemporaryDirectory() as directory,
        fake.serving(Path(directory), fake.BACKUP, fake.BACKUP_HEADER) as server,
    ):
        yield conformance.Device("127.0.0.1", port=server.port, fingerprint=server.fingerprint)


TOKEN = Token.from_text(fake.TOKEN)
TestProxmoxVe = conformance.suite(ProxmoxVe, cluster, credential=TOKEN)
TestProxmoxBackup = conformance.suite(ProxmoxBackup, backup_server, credential=TOKEN)
