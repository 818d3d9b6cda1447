"""The sink passes the conformance suite of poller.

The suite gets no list of stored samples, so it does not check for repeated ones: a slow disk may
repeat lines (see the README).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from poller_jsonlines import JsonLinesSink

from poller.sinks.api import Stores
from poller.testing import sink_conformance


@contextmanager
def stores() -> Iterator[Stores]:
    with tempfile.TemporaryDirectory() as home:
        yield Stores(engine=None, redis=None, settings=SimpleNamespace(home=Path(home)))


TestJsonLines = sink_conformance.suite(JsonLinesSink, stores)
