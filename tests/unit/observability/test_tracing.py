"""Traces are off unless an endpoint is set."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from poller.observability import tracing
from poller.settings import Settings

#: The modules that record and send spans. redis-py imports others of the package by itself.
USED = """
import sys
import poller.beat.dispatch, poller.tasks.poll, poller.workers.batch.worker_poller
from poller.observability import tracing
assert tracing.begin_dispatch() is None
assert tracing.begin_batch("00-" + "1" * 32 + "-" + "1" * 16 + "-01", {}) is None
found = {"opentelemetry.sdk.trace", "opentelemetry.exporter"} & set(sys.modules)
assert not found, found
"""
#: A machine without the extra.
MISSING = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from poller import errors
from poller.observability import tracing
import poller.workers.batch.worker_poller
try:
    tracing.start(tracing.TraceDestination("http://127.0.0.1:1/v1/traces", 1.0), "worker")
except errors.InvalidSetting as error:
    assert "poller[otel]" in error.hint
else:
    raise AssertionError("it started")
"""


@pytest.mark.parametrize("program", [USED, MISSING], ids=["off", "not installed"])
def test_nothing_of_opentelemetry_is_needed_while_traces_are_off(program: str) -> None:
    """A new interpreter imports beat and worker, and has no module that makes or sends spans."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_step_of_a_batch_that_is_not_traced_is_nothing() -> None:
    with tracing.step(None, "finish"):
        pass


@pytest.mark.parametrize(
    "url", ["collector:4318", "ftp://h/v1/traces", "http://", "http://user:pw@h:4318/v1/traces"]
)
def test_an_endpoint_that_is_no_url_or_has_a_login_is_refused(url: str) -> None:
    """A login in a URL would be in logs."""
    with pytest.raises(ValidationError, match="trace_endpoint"):
        Settings(trace_endpoint=url)
