"""`poller worker`: one Celery worker process per core, supervised and restarted."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from types import FrameType
from typing import Annotated

import typer

from poller import errors
from poller.cli.output.log_lines import POLLER, LogLines
from poller.cli.up import role_commands
from poller.cli.up.process_supervisor import Role, Supervisor, any_role
from poller.domain.scheduling import queue_routing
from poller.settings import Settings, load
from poller.workers.guard import black_box
from poller.workers.process import process_limits

#: A process uses this much memory before its first poll; below it would restart for ever.
MINIMUM_MEMORY = 160 * 2**20
#: Memory of a process that polls, and the memory that each cached target adds.
BASE_MEMORY = 200 * 2**20
TARGET_MEMORY = 8_000
#: After its polls are cut off, a stopping process still writes its results and deregisters.
EXIT_S = 15.0
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_CHECK_EVERY_S = 0.2


def command(
    tags: Annotated[
        str | None,
        typer.Option(
            help="Tags of these workers: key=value,key=value.", show_default="worker_tags"
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Worker processes.", show_default="one per core"),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Batches each polls at the same time.", show_default="worker_concurrency"
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="A process above this is stopped softly and replaced: 512M, 1G.",
            show_default="none",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="Prefix of their names: NAME1@host, NAME2@host and so on.")
    ] = "poller",
) -> None:
    """Run workers and restart those that end.

    Ctrl-C lets them finish their polls; a second one ends them at once.
    """
    settings = load()
    env = {"PYTHONUNBUFFERED": "1", **_tags(settings, tags)}
    batches = concurrency or settings.worker_concurrency
    file_limit = process_limits.raise_file_limit()
    process_limits.check_file_limit(batches, settings.batch_size, file_limit)
    limit = _memory(memory_limit)
    _check_name(name)

    workers = WorkerProcesses(settings)
    needed = BASE_MEMORY + TARGET_MEMORY * settings.target_cache
    if 0 < limit < needed:
        workers.print_line(POLLER, _low_limit(limit, needed, settings.target_cache))

    count = processes or len(os.sched_getaffinity(0))
    numbers = range(1, count + 1)
    workers.run([role_commands.worker(number, env, name, concurrency, limit) for number in numbers])


def _tags(settings: Settings, text: str | None) -> dict[str, str]:
    """The environment variable for `--tags`.

    Raises InvalidInput for bad tags, also of the setting.
    """
    if text is None:
        queue_routing.parse_tags(settings.worker_tags)
        return {}

    words = [word.strip() for word in text.split(",") if word.strip()]
    queue_routing.parse_tags(words, "--tags")
    return {"POLLER_WORKER_TAGS": ",".join(words)}


def parse_bytes(text: str, option: str) -> int:
    """The bytes of `512M`, `1.5G` or `800 MiB`, in powers of 1024. Raises InvalidInput."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise errors.InvalidInput(f'{option}: "{text}" is not a size', hint="write 512M or 1.5G")
    number, unit = match.groups()
    return round(float(number) * _UNITS[unit.lower()])


def _memory(text: str | None) -> int:
    """The memory limit in bytes; 0 is no limit. Raises InvalidInput."""
    if text is None:
        return 0

    limit = parse_bytes(text, "--memory-limit")
    if limit < MINIMUM_MEMORY:
        raise errors.InvalidInput(
            f"--memory-limit: {text} is less than a worker needs to start",
            hint=f"give it {MINIMUM_MEMORY // 2**20}M or more, or run fewer --processes",
        )

    return limit


def _low_limit(limit: int, needed: int, targets: int) -> str:
    return (
        f"warning: --memory-limit is {limit / 2**20:.0f} MiB; a process that caches "
        f"{targets:,} targets (target_cache) has about {needed / 2**20:.0f} MiB and would be "
        "replaced again and again: with a fleet of that size raise it, or lower POLLER_TARGET_CACHE"
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.InvalidInput(
            f'--name: "{name}" cannot be part of a node name',
            hint="use letters, digits, dots and dashes; the number and @host are added",
        )


class WorkerProcesses:
    """The processes of one `poller worker`, from start to stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._patience_s = settings.worker_drain_s + EXIT_S
        self._lines = LogLines(to_stderr=True)
        self._supervisor = Supervisor(None, self.print_line, self._patience_s)
        self._stopping = threading.Event()
        self._hurrying = threading.Event()
        self._reader_gone = False  # the program that reads the output has ended

    def run(self, roles: list[Role]) -> None:
        """Run until a signal. Exits with 1 if a process had to be killed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

        try:
            for role in roles:
                self._supervisor.add(role)

            while not self._stopping.wait(_CHECK_EVERY_S):
                self._supervisor.check()
                if self._supervisor.all_misconfigured(any_role):
                    raise errors.InvalidSetting(
                        "no worker can run as it is configured", hint="what their own lines say"
                    )

            self._supervisor.stop(any_role, self._patience_s, self._hurrying.is_set)
        finally:
            killed = self._supervisor.kill(any_role)

        black_box.discard(self._settings.home, killed)
        if self._reader_gone:
            raise BrokenPipeError
        if killed:
            raise typer.Exit(1)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Stop softly at the first signal, at once at the second."""
        name = signal.Signals(number).name
        if self._stopping.is_set():
            self._hurrying.set()
            text = "ending at once; unfinished polls come back when their leases end"
            self.print_line(POLLER, f"{name} again: {text}")
        else:
            text = "stopping; running polls may finish (once more: at once)"
            self.print_line(POLLER, f"{name}: {text}")

        self._stopping.set()

    def print_line(self, role: str, text: str) -> None:
        """Print a line. A closed output stops all workers instead of failing."""
        try:
            if self._settings.log_format == "json":
                sys.stderr.write(_as_json(role, text) + "\n")
            else:
                self._lines.line(role, text)
        except (BrokenPipeError, SystemExit):  # Rich turns the first into the second
            self._reader_gone = True
            self._stopping.set()
        except OSError:
            return  # the output is a file on a disk that is full: there is no place to say so


def _as_json(role: str, text: str) -> str:
    """A JSON object: a worker's own with the field `process`, or a text as its `event`."""
    process = f'{{"process": {json.dumps(role)}'
    if text.startswith('{"'):
        return f"{process}, {text[1:]}"
    return f'{process}, "event": {json.dumps(text)}}}'
