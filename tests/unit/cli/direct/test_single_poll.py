"""`poller collect`: a collector that fails after its poll does not lose the poll."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from poller.cli.direct import single_poll
from poller.collectors import api
from poller.domain.failures.outcome import Result


class Clumsy:
    name = "clumsy"
    api_version = 1
    Options = api.Options
    credentials = ()

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        yield api.Reading("one", 1.0)

    async def close(self) -> None:
        raise RuntimeError("no such file")


class Slow(Clumsy):
    async def close(self) -> None:
        await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("collector", "said"), [(Clumsy(), "RuntimeError: no such file"), (Slow(), "TimeoutError")]
)
def test_a_collector_that_cannot_be_closed_still_has_a_result(
    collector: Clumsy, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failure to close is a note."""
    drained = asyncio.run(single_poll.collect(collector, "127.0.0.1", api.Options(), None, 5))
    assert drained.outcome.result is Result.OK
    assert f"clumsy could not be closed: {said}" in capsys.readouterr().err


ENDS = """
import asyncio, os
from poller.cli.direct import plugin_runner, single_poll
from poller.cli.direct import single_poll

async def poll():
    if os.fork() == 0:
        os._exit(7)  # a child of the plugin's own
    os.wait()
    os._exit(3)

with single_poll.exit_reported("suicidal"):
    plugin_runner.run(poll(), 5)
"""


def test_a_collector_that_ends_the_process_is_reported() -> None:
    """The exit code is 1, that of a failed poll: 3 would be a name that does not exist."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error[P118]: collector suicidal ended the process it ran in, with exit code 3\n"
    )
    assert done.stderr.count("error") == 1
