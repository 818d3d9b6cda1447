"""`poller up`: every role in one terminal, with an embedded server unless one is configured."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from poller.cli.arguments import completion
from poller.cli.output.log_lines import LogLines
from poller.cli.up import chosen_sinks, home_lock
from poller.cli.up.local_cluster import LocalCluster
from poller.settings import load

DEMO_DEVICES = 200


def command(
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes.", show_default="one per core")
    ] = None,
    with_demo: Annotated[
        bool, typer.Option("--demo", help="Add a simulated fleet to the inventory and poll it.")
    ] = False,
    devices: Annotated[
        int, typer.Option(min=1, max=100_000, help="Size of the simulated fleet.")
    ] = DEMO_DEVICES,
    sinks: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="NAME",
            help="One more sink for readings, by name or as KIND=ADDRESS, such as "
            "remote_write=http://127.0.0.1:9090/api/v1/write. Repeatable.",
            autocompletion=completion.sinks,
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="Stop after this many seconds of polling.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as one JSON object on the last line.")
    ] = False,
) -> None:
    """Run server, migrations, scheduler, workers, page and Flower. Ctrl-C stops them all."""
    settings = load()
    if sinks:
        os.environ.update(chosen_sinks.variables(sinks, settings))
        settings = load()
    workers = workers or os.cpu_count() or 1
    demo_size = devices if with_demo else 0

    with home_lock.locked(settings.home):
        cluster = LocalCluster(settings, LogLines(to_stderr=as_json))
        report = cluster.run(workers, demo_size, seconds)

    cluster.lines.summary(report)
    if as_json:
        print(json.dumps(report), flush=True)
