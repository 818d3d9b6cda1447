"""One collection by a collector in this process, through the runner that workers use."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from poller import errors, plugins
from poller.cli.direct import plugin_runner
from poller.cli.output import render

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Options
    from poller.collectors.poll_runner import PollReport

#: The time a collector has to close its sessions after the poll.
CLOSE_S = 0.4


def run(
    collector: Collector,
    address: str,
    options: Options,
    credential: Credential | None,
    budget_s: float,
) -> PollReport:
    """Collect once. Raises CollectorCrashed if the collector blocks."""
    if sys.__stderr__ and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)  # a crash in C code then prints where it happened
    work = collect(collector, address, options, credential, budget_s)
    with exit_reported(collector.name):
        return plugin_runner.run(work, budget_s + plugin_runner.CLEAN_UP_S)


async def collect(
    collector: Collector,
    address: str,
    options: Options,
    credential: Credential | None,
    budget_s: float,
) -> PollReport:
    """Collect with the function that workers use, then close the collector."""
    from poller.collectors import poll_runner
    from poller.collectors.api import Closeable, Poll

    deadline = asyncio.get_running_loop().time() + budget_s
    poll = Poll(0, address, address, options, credential, deadline)
    report = await poll_runner.run_and_report(collector, poll)

    if isinstance(collector, Closeable):
        try:
            async with asyncio.timeout(CLOSE_S):
                await collector.close()
        except Exception as error:  # noqa: BLE001  the door to a plugin: the poll is over
            render.note(f"{collector.name} could not be closed: {plugins.error_text(error)}")

    return report


@contextmanager
def exit_reported(collector: str) -> Iterator[None]:
    """Report a plugin that calls os._exit and exit with 1: its code would pass for poller's."""
    pid = os.getpid()
    real_exit = os._exit

    def reporting_exit(status: int) -> NoReturn:
        if os.getpid() == pid:  # otherwise this is a child process of the plugin
            text = f"collector {collector} ended the process it ran in, with exit code {status}"
            render.error(errors.CollectorDied(text, hint="a plugin must not call os._exit"))
            sys.stderr.flush()
            status = 1
        real_exit(status)

    os._exit = reporting_exit
    try:
        yield
    finally:
        os._exit = real_exit
