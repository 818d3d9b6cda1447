"""The lines of a poller.toml that its keys begin on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poller import settings
from poller.settings import toml_lines

TEXT = """\
# batch_size = 1
batch_size = 32

"tick_s" = 0.5
sinks = [
  "sql",
  "prom",
]
web.port = 1

[sink.prom]   # a comment
kind = "remote_write"
max_queue = 7
[[route]]
[sink.other]
"""


def test_each_key_has_its_first_line() -> None:
    """Keys of tables are not those of settings, and comments are none."""
    assert toml_lines.first_lines(TEXT) == {
        "batch_size": 2,
        "tick_s": 4,
        "sinks": 5,
        "web": 9,
        "sink": 11,
        "route": 14,
    }


def test_a_file_that_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    """A missing file, and one that is no text."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert toml_lines.of_file(tmp_path / "missing") == {}
    assert toml_lines.of_file(tmp_path / "binary") == {}


def test_origins_name_the_line_and_the_variable_of_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where to look for a value that was set."""
    (tmp_path / "poller.toml").write_text('\nbatch_size = 32\n[sink.x]\nkind = "stream"\n')
    (tmp_path / "token").write_text("long-enough-to-be-a-token-of-metrics")
    monkeypatch.setenv("POLLER_METRICS_TOKEN_FILE", str(tmp_path / "token"))
    found = settings.origins(os.environ)
    assert found["batch_size"] == "poller.toml, line 2"
    assert found["sink"] == "poller.toml, line 3"
    assert found["metrics_token"] == "file named by POLLER_METRICS_TOKEN_FILE"
