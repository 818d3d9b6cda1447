"""`poller discover`: the targets that installed collectors suggest for an address or a prefix."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from poller import errors
from poller.cli.arguments import address_range, completion, key_values
from poller.cli.direct import discovery_report, plugin_runner
from poller.cli.inventory import discovered_form, inventory_files
from poller.cli.output import progress, render
from poller.domain.inventory import duration
from poller.service.discovery import address_discovery, discovery_choice
from poller.service.discovery.address_discovery import AddressResult, Login, Plan

if TYPE_CHECKING:
    from poller.collectors.api import Collector

#: When to give up a single address, and each address of a scan.
_TIMEOUT = "10s"
_SCAN_TIMEOUT = "3s"
Format = Literal["csv", "json", "yaml"]


def command(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS[:PORT]",
            help="An IP address, a host name, or a prefix: 192.0.2.0/24.",
        ),
    ],
    collector: Annotated[
        list[str] | None,
        typer.Option(
            help="Ask only this collector. Repeat for more.",
            autocompletion=completion.collectors,
        ),
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            help="A stored credential to try. Repeat for more; they are tried in order.",
            autocompletion=completion.credentials,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="KEY=VALUE",
            help="An option of the one collector that is asked.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            help=f"When to give up an address. Default: {_TIMEOUT}; {_SCAN_TIMEOUT} for a prefix."
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Addresses of a prefix that are asked at a time.")
    ] = 64,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Print what was found in a form that device import reads."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", dir_okay=False, help="Write that form to a file as well."),
    ] = None,
    as_json: render.Json = False,
) -> None:
    """Ask each collector that can discover for targets that suit an address. Nothing is stored.

    Only named credentials are sent. With one --collector and no credential the secret is read as by
    `poller collect`. A prefix of up to 4,096 addresses is scanned; --output hosts.csv writes what
    was found for `poller device import hosts.csv`.
    """
    from poller.collectors import registry

    addresses, port = address_range.expand(address)
    scanned = address_range.is_range(address)
    file_form = _file_form(output, form)
    found = registry.load()
    chosen = discovery_choice.collectors(found, collector or ())
    single = chosen[0] if collector and len(chosen) == 1 else None
    given = _given(single, option or ())
    options = discovery_choice.options(found, chosen, port, single, given)
    budget_s = duration.timeout_ms(timeout or (_SCAN_TIMEOUT if scanned else _TIMEOUT)) / 1000
    stored = _stored(credential or (), address)
    logins = _logins(chosen, single, stored, options)

    plan = Plan(discovery_choice.in_order(chosen, logins), options, logins, budget_s)
    scan = _run(addresses, plan, concurrency)
    results = [replace(result, port=port) for result in scan]
    if output is not None:
        discovery_report.write_file(output, file_form, results)
    if form is not None:
        discovered_form.write(sys.stdout, form, results)
    else:
        report = discovery_report.print_scan if scanned else discovery_report.print_address
        report(address, results, as_json)
    if not any(result.suggestions for result in results):
        raise typer.Exit(1)


def _run(addresses: Sequence[str], plan: Plan, concurrency: int) -> list[AddressResult]:
    """Ask about all addresses, with a progress bar."""
    rounds = math.ceil(len(addresses) / concurrency)
    total = len(addresses)

    async def work() -> list[AddressResult]:
        ticks = progress.track(itertools.count(), total, "scanning", step=1)
        next(ticks)
        try:
            return await address_discovery.scan(addresses, plan, concurrency, ticks.__next__)
        finally:
            ticks.close()

    return plugin_runner.run(work(), rounds * (plan.longest_s + plugin_runner.CLEAN_UP_S))


def _file_form(output: Path | None, form: Format | None) -> str:
    """The form of --output, checked before anything is sent. Raises InvalidInput."""
    if output is None:
        return ""
    return form or inventory_files.form_of(output)


def _given(single: Collector | None, words: Sequence[str]) -> dict[str, Any]:
    """The typed options of the one collector that is asked. Raises InvalidInput."""
    if words and single is None:
        raise errors.InvalidInput("--option is for one collector", hint="name it with --collector")
    return key_values.option_values(single.Options, words) if single else {}


def _logins(
    chosen: Sequence[Collector],
    single: Collector | None,
    stored: Sequence[Login],
    options: Mapping[str, Any],
) -> dict[str, list[Login]]:
    """The logins that each collector may try: the stored credentials of a kind it takes."""
    from poller.cli.arguments import secret_input

    if not stored and single is not None and single.name in options:
        credential = secret_input.for_collector(single, options[single.name])
        return {single.name: [Login(credential=credential)]}

    return {
        each.name: discovery_choice.logins(each, stored, options.get(each.name)) for each in chosen
    }


def _stored(names: Sequence[str], address: str) -> list[Login]:
    """The decrypted credentials of these names, each with its audit row. Raises NotFound."""
    from poller.cli.direct import stored_credential

    return [Login(name, stored_credential.opened(name, f"discover {address}")) for name in names]
