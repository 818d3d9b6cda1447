"""The reason why an embedded server ended: damaged data, or another one that spares the data."""

from __future__ import annotations

import pytest

from poller.cli.up import embedded_server
from poller.cli.up.embedded_server import DamagedData

HEAD = "7:M 18 Nov 2026 00:00:00.000 # "
LAST = HEAD + "Fatal error loading the DB, check server logs. Exiting."


@pytest.mark.parametrize(
    ("line", "is_damage"),
    [
        ("Bad file format reading the append only file: make a backup", True),
        ("Fatal error: can't open the append log file a.aof for reading: Is a directory", True),
        ("Fatal error: can't open the append log file a.aof for reading: Permission denied", False),
        ("Can't open or create append-only dir appendonlydir: Permission denied", False),
        ("Fatal error: can't open the AOF manifest file a for reading: Input/output error", False),
        ("Can't open or create append-only dir appendonlydir: Read-only file system", False),
        ("Fatal error: can't open the append log file a.aof: No space left on device", False),
    ],
)
def test_only_unreadable_content_is_damage(line: str, is_damage: bool) -> None:
    """Data that this user may not read, or that a sick disk does not give, is not set aside."""
    error = embedded_server._ended([HEAD + line, LAST])
    assert isinstance(error, DamagedData) is is_damage
    assert error.cause == line
