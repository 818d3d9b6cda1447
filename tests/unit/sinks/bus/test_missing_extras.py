"""A sink whose extra is not installed says so, with the command that installs it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from poller.sinks import registry


@pytest.mark.parametrize(
    ("sink", "library", "package"),
    [("nats", "nats", "nats-py"), ("kafka", "confluent_kafka", "confluent-kafka")],
)
def test_a_missing_extra_is_named_with_its_command(
    sink: str, library: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other sinks are not affected: only the broken one is reported."""
    loaded_before = [name for name in sys.modules if name.startswith(f"poller.sinks.bus.{sink}")]
    for name in (*loaded_before, library):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    kind = f"{sink.capitalize()}Sink"
    point = EntryPoint(sink, f"poller.sinks.bus.{sink}:{kind}", registry.GROUP)
    (broken,) = registry.survey([point]).broken
    assert broken.reason == f"the {sink} sink needs {package}, which is not installed"
    assert broken.hint == f"pip install 'poller[{sink}]'"
