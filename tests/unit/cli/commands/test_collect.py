"""`poller collect --output prometheus`: exact for a program, harmless for a terminal."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from poller.cli.commands import collect
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

ALIAS = "up\x1b]0;owned\x07\x9b31m"


@pytest.mark.parametrize("on_terminal", [True, False])
def test_control_characters_of_labels_act_on_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, on_terminal: bool
) -> None:
    """A device chooses its labels. A pipe gets them as Prometheus would."""
    series = Series("ifOperStatus", (("ifAlias", ALIAS),), Kind.GAUGE)
    readings = ReadingSet(SeriesSet((series,)), [1.0])
    collector: Any = SimpleNamespace(name="snmp")
    options: Any = None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal, raising=False)

    collect._print_prometheus(readings, collector, options)
    shown = capsys.readouterr().out
    assert ("\x1b" in shown) is not on_terminal
    assert (r"up\u001b]0;owned\u0007\u009b31m" in shown) is on_terminal
