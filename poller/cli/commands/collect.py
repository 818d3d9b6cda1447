"""`poller collect`: one collection, here and now, with no database and no Redis: does it work, what does it give?"""

from __future__ import annotations

import asyncio
import enum
import faulthandler
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from poller import errors, plugins
from poller.cli import plugin_runner
from poller.cli.arguments import completion, key_values
from poller.cli.output import render
from poller.cli.output.columns import Column, column, plain
from poller.domain.inventory import duration, naming

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Options
    from poller.collectors.poll_runner import PollReport
    from poller.domain.metrics.reading import ReadingSet

#: For what an instance holds, after the poll.
CLOSE_S = 0.4
SECRET_VARIABLE = "POLLER_COLLECT_SECRET"  # noqa: S105  its name, not its value


class Output(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    PROMETHEUS = "prometheus"


_VALUE = Column("VALUE", lambda item: _number(item["value"]), right=True)
#: For programs every field by itself.
_FIELDS = (column("METRIC", "metric"), column("LABELS", "labels"), _VALUE, column("KIND", "kind"))
_GAPS = 16  # the kind's column and the space between columns


def command(
    collector: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTOR",
            help="For example snmp or routeros.",
            autocompletion=completion.collectors,
        ),
    ],
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="An IP address or a host name.")
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the collector."),
    ] = None,
    output: Annotated[Output, typer.Option(help="How to print the readings.")] = Output.TABLE,
    timeout: Annotated[str, typer.Option(help="When to give up.")] = "10s",
    as_json: render.Json = False,
) -> None:
    """Run a collector once against an address and print what it reads.

    The secret is taken from POLLER_COLLECT_SECRET, else from stdin when it is piped, else asked for.
    """
    from poller.collectors import registry

    form = Output.JSON if as_json else output
    budget_s = duration.timeout_ms(timeout) / 1000
    address = naming.checked_address(address)
    found = registry.load()
    chosen = found.get(collector)
    options = found.checked_options(collector, values(chosen.Options, option or ()))
    credential = credential_for(chosen, options)
    if sys.__stderr__ and not faulthandler.is_enabled():
        faulthandler.enable(
            sys.__stderr__
        )  # a plugin that crashes in C code takes us along, and leaves its place
    with _last_words(collector):
        drained = plugin_runner.run(
            _collect(chosen, address, options, credential, budget_s),
            budget_s + plugin_runner.TIDY_S,
        )
    _print(drained, form, chosen, address, options)
    _report(drained)


async def _collect(
    collector: Collector,
    address: str,
    options: Options,
    credential: Credential | None,
    budget_s: float,
) -> PollReport:
    """The very function a worker drains a collector with."""
    from poller.collectors import poll_runner
    from poller.collectors.api import Closeable, Poll

    deadline = asyncio.get_running_loop().time() + budget_s
    poll = Poll(0, address, address, options, credential, deadline)
    drained = await poll_runner.run_and_report(collector, poll)
    if isinstance(collector, Closeable):
        try:
            async with asyncio.timeout(CLOSE_S):
                await collector.close()
        except Exception as error:  # noqa: BLE001  a plugin may raise anything, and the poll is over
            render.note(f"{collector.name} could not be closed: {plugins.error_text(error)}")
    return drained


@contextmanager
def _last_words(collector: str) -> Iterator[None]:
    """A plugin that ends the process takes us along without a word, and its exit code would pass for ours."""
    pid, really = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() == pid:  # else it is a child of the plugin's own
            text = f"collector {collector} ended the process it ran in, with exit code {status}"
            render.error(errors.CollectorDied(text, hint="a plugin must not call os._exit"))
            sys.stderr.flush()
            status = 1
        really(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = really


def values(model: type[Options], options: Sequence[str]) -> dict[str, Any]:
    """`key=value` words, understood as when a target is added: `port=1161`, `tls=true`, `modules=[system]`."""
    return key_values.typed(model, key_values.pairs(options))


def credential_for(collector: Collector, options: Options) -> Credential | None:
    from poller.cli.arguments import secret_input
    from poller.collectors import credentials
    from poller.collectors.api import needs_credential

    if not collector.credentials:
        return None
    text = os.environ.get(SECRET_VARIABLE)
    if text is None and not needs_credential(collector, options):
        return None
    if text is None and sys.stdin.isatty():
        return secret_input.ask(collector.credentials)
    text = sys.stdin.read() if text is None else text
    if not text.strip("\r\n"):
        kinds = " or ".join(model.kind for model in collector.credentials)
        raise errors.InvalidInput(
            f"collector {collector.name} needs a secret ({kinds})",
            hint=f"set {SECRET_VARIABLE}, or pipe it to stdin",
        )
    return credentials.read(text, collector.credentials)


def _print(
    drained: PollReport, form: Output, collector: Collector, address: str, options: Options
) -> None:
    outcome = drained.outcome
    if form is Output.JSON:
        body: dict[str, Any] = {
            "collector": collector.name,
            "address": address,
            "result": outcome.result.value,
        }
        failures = [
            {"part": f.part, "error_code": f.error.error_code, "message": str(f.error)}
            for f in drained.failures
        ]
        body |= {"traffic": asdict(drained.traffic)} if drained.traffic else {}
        render.document(
            "poller.collect/1",
            {**body, "failures": failures, "items": list(_rows(outcome.readings))},
        )
    elif outcome.readings is None:
        return
    elif form is Output.PROMETHEUS:
        _expose(outcome.readings, collector, options)
    else:
        rows = list(_rows(outcome.readings))
        render.listing("poller.collect/1", rows, _columns(rows), as_json=False)
        if sys.stdout.isatty():  # programs find it in --json
            render.note(_summary(len(rows), drained))


def _summary(readings: int, drained: PollReport) -> str:
    """`153 readings, 5 requests (1 of them repeated)`"""
    traffic = drained.traffic
    asked = f", {_several(traffic.sent, 'request')}" if traffic else ""
    again = f" ({traffic.retried} of them repeated)" if traffic and traffic.retried else ""
    return f"{_several(readings, 'reading')}{asked}{again}"


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _expose(readings: ReadingSet, collector: Collector, options: Options) -> None:
    from poller.cli.output import prometheus_text
    from poller.collectors.api import Documented

    texts: Mapping[str, str] = {}
    if isinstance(collector, Documented):
        try:
            texts = {str(name): str(text) for name, text in collector.help_texts(options).items()}
        except Exception as error:  # noqa: BLE001  a plugin may raise anything: the readings are there
            render.note(
                f"collector {collector.name} has no help texts: {plugins.error_text(error)}"
            )
    for line in prometheus_text.lines(readings, texts):
        render.echo(line)


def _rows(readings: ReadingSet | None) -> Iterator[dict[str, Any]]:
    if readings is None:
        return
    for series, value in zip(readings.series.series, readings.values, strict=True):
        finite = value if math.isfinite(value) else None  # JSON has no other word for it
        yield {
            "metric": series.name,
            "labels": dict(series.labels),
            "value": finite,
            "kind": series.kind.value,
        }


def _report(drained: PollReport) -> None:
    """Failures on stderr, and exit code 1, when anything failed."""
    for failure in drained.failures:
        error = failure.error
        if failure.part:
            error = type(error)(f"{failure.part}: {error.message}", error.cause, error.hint)
        render.error(error)
    if drained.failures:
        raise typer.Exit(1)


def _columns(rows: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
    """On a terminal, name and labels share a column: where it is narrow, labels are cut, names and values are not."""
    if not sys.stdout.isatty():
        return _FIELDS
    longest = max(len(_number(row["value"])) for row in rows)
    room = max(20, shutil.get_terminal_size().columns - longest - _GAPS)
    return (
        Column("METRIC", lambda item: _cut(_series(item), room)),
        _VALUE,
        column("KIND", "kind"),
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _series(item: Mapping[str, Any]) -> str:
    labels = plain({key: text for key, text in item["labels"].items() if text})
    return f"{item['metric']}  {labels}".rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return str(int(value)) if value % 1 == 0 and abs(value) < 2**64 else f"{value:.12g}"
