"""`poller collect`: one collection here and now. A database is read for `--credential` only."""

from __future__ import annotations

import enum
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import plugins
from poller.cli.arguments import completion, key_values
from poller.cli.output import render
from poller.cli.output.columns import Column, Item, column, plain
from poller.domain.inventory import address_port, duration, host_port
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Options
    from poller.collectors.poll_runner import PollReport
    from poller.domain.metrics.reading import ReadingSet

SCHEMA = "poller.collect/1"


class Output(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    PROMETHEUS = "prometheus"


def _value(item: Item) -> str:
    return _number(item["value"])


_VALUE = Column("VALUE", _value, right=True)
#: In a pipe each field has its own column.
_FIELDS = (column("METRIC", "metric"), column("LABELS", "labels"), _VALUE, column("KIND", "kind"))
#: Cells of the kind's column and of the gaps between columns.
_KIND_AND_GAPS = 16


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
        str,
        typer.Argument(
            metavar="ADDRESS[:PORT]", help="An IP address or a host name, and a port if needed."
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the collector."),
    ] = None,
    credential_name: Annotated[
        str | None,
        typer.Option(
            "--credential",
            metavar="NAME",
            help="A stored credential instead of a typed secret; the audit log names who used it.",
            autocompletion=completion.credentials,
        ),
    ] = None,
    output: Annotated[Output, typer.Option(help="How to print the readings.")] = Output.TABLE,
    timeout: Annotated[str, typer.Option(help="When to give up.")] = "10s",
    as_json: render.Json = False,
) -> None:
    """Run a collector once against an address and print its readings.

    The secret comes from POLLER_COLLECT_SECRET, from stdin when it is piped, or from a prompt.
    """
    from poller.cli.arguments import secret_input
    from poller.cli.direct import single_poll, stored_credential
    from poller.collectors import api, registry

    form = Output.JSON if as_json else output
    budget_s = duration.timeout_ms(timeout) / 1000
    address, port = host_port.parse(address)
    found = registry.load()
    chosen = found.get(collector)
    given = key_values.option_values(chosen.Options, option or ())
    port_option = api.port_option(chosen.Options)
    values = address_port.with_port(given, port, port_option, collector)
    options = found.checked_options(collector, values)
    render.notes(api.cautions(chosen, options), "warning")
    if credential_name is None:
        credential = secret_input.for_collector(chosen, options)
    else:
        purpose = f"collect {collector} {address}"
        credential = stored_credential.opened_for(chosen, credential_name, purpose)

    report = single_poll.run(chosen, address, options, credential, budget_s)
    if form is Output.JSON:
        _print_json(report, collector, address)
    elif report.outcome.readings is not None:
        _print_readings(report, report.outcome.readings, form, chosen, options)

    _print_failures(report)


def _print_json(report: PollReport, collector: str, address: str) -> None:
    failures = []
    for failure in report.failures:
        error = failure.error
        failures.append(
            {"part": failure.part, "error_code": error.error_code, "message": str(error)}
        )

    body: dict[str, Any] = {
        "collector": collector,
        "address": address,
        "result": report.outcome.result.value,
    }
    if report.traffic:
        body["traffic"] = asdict(report.traffic)

    body["failures"] = failures
    body["items"] = list(_rows(report.outcome.readings))
    render.document(SCHEMA, body)


def _print_readings(
    report: PollReport,
    readings: ReadingSet,
    form: Output,
    collector: Collector,
    options: Options,
) -> None:
    if form is Output.PROMETHEUS:
        _print_prometheus(readings, collector, options)
        return

    rows = list(_rows(readings))
    render.listing(SCHEMA, rows, _columns(rows), as_json=False)
    if sys.stdout.isatty():  # programs read these numbers from --json
        render.note(_summary(len(rows), report))


def _summary(readings: int, report: PollReport) -> str:
    """`153 readings, 5 requests (1 of them repeated)`"""
    text = formatting.counted(readings, "reading")
    traffic = report.traffic
    if traffic:
        text += f", {formatting.counted(traffic.sent, 'request')}"
        if traffic.retried:
            text += f" ({traffic.retried} of them repeated)"

    return text


def _print_prometheus(readings: ReadingSet, collector: Collector, options: Options) -> None:
    from poller.collectors.api import Documented
    from poller.presentation.exposition import prometheus_text

    texts: Mapping[str, str] = {}
    if isinstance(collector, Documented):
        try:
            texts = {str(name): str(text) for name, text in collector.help_texts(options).items()}
        except Exception as error:  # noqa: BLE001  the door to a plugin: the readings are complete
            render.note(
                f"collector {collector.name} has no help texts: {plugins.error_text(error)}"
            )

    on_terminal = sys.stdout.isatty()
    for line in prometheus_text.lines(readings, texts):
        # A program gets the bytes that Prometheus would get.
        render.echo(formatting.visible(line) if on_terminal else line)


def _rows(readings: ReadingSet | None) -> Iterator[dict[str, Any]]:
    if readings is None:
        return

    for series, value in zip(readings.series.series, readings.values, strict=True):
        yield {
            "metric": series.name,
            "labels": dict(series.labels),
            "value": value if math.isfinite(value) else None,  # JSON has no NaN and no infinity
            "kind": series.kind.value,
        }


def _print_failures(report: PollReport) -> None:
    """Print failures on stderr and exit with 1 if there are any."""
    for failure in report.failures:
        error = failure.error
        if failure.part:
            error = type(error)(f"{failure.part}: {error.message}", error.cause, error.hint)
        render.error(error)

    if report.failures:
        raise typer.Exit(1)


def _columns(rows: Sequence[Item]) -> Sequence[Column]:
    """On a terminal, name and labels share a column; a narrow screen cuts the labels."""
    if not sys.stdout.isatty():
        return _FIELDS

    value_width = max(len(_value(row)) for row in rows)
    screen = shutil.get_terminal_size().columns
    width = max(20, screen - value_width - _KIND_AND_GAPS)

    def series(item: Item) -> str:
        labels = plain({key: text for key, text in item["labels"].items() if text})
        text = f"{item['metric']}  {labels}".rstrip()
        return text if len(text) <= width else text[: width - 1] + "…"

    return (Column("METRIC", series), _VALUE, column("KIND", "kind"))


def _number(value: float | None) -> str:
    """A value with up to twelve digits; a dash for NaN and infinity."""
    if value is None:
        return "–"
    if value % 1 == 0 and abs(value) < 2**64:
        return str(int(value))
    return f"{value:.12g}"
