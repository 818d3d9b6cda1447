"""The report of a discovery: what was found, why nothing was, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from poller import errors
from poller.cli.inventory import discovered_form
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, option_text
from poller.service.discovery.address_discovery import AddressResult, Suggested

_COLUMNS = (
    column("COLLECTOR", "collector", fit=Fit.WHOLE),
    column("OPTIONS", "options", fit=Fit.WRAP),
    column("WHY", "reason", fit=Fit.WRAP),
)
_SCAN_COLUMNS = (
    column("ADDRESS", "address", fit=Fit.WHOLE),
    column("COLLECTOR", "collector", fit=Fit.WHOLE),
    column("CREDENTIAL", "credential"),
    column("OPTIONS", "options", fit=Fit.WRAP),
    column("WHY", "reason", fit=Fit.WRAP),
)
#: Addresses that answered without a suggestion, of which the reasons are printed.
_MAX_REASONS = 20


def write_file(output: Path, form: str, results: Sequence[AddressResult]) -> None:
    """Write a file that `poller device import` reads."""
    try:
        with output.open("w", newline="", encoding="utf-8") as file:
            count = discovered_form.write(file, form, results)
    except OSError as error:
        raise errors.InvalidInput(
            f"--output: cannot write {output}", cause=error.strerror or ""
        ) from None
    devices = "1 device" if count == 1 else f"{count:,} devices"
    advice = f"; next: poller device import {output} --dry-run" if count else ""
    render.note(f"wrote {devices} to {output}{advice}")


def print_address(address: str, results: Sequence[AddressResult], as_json: bool) -> None:
    """Print suggestions, reasons for none, and the command that adds the first."""
    [result] = results
    silent = []
    for each in result.discoveries:
        if not each.suggestions:
            silent.append({"collector": each.collector, "reason": each.reason})

    items = [asdict(each) for each in result.suggestions]
    render.listing("poller.discover/1", items, _COLUMNS, as_json, address=address, nothing=silent)
    if as_json:
        return

    for reason in silent:
        render.note(f"{reason['collector']}: {reason['reason']}")
    if result.suggestions:
        render.note(f"next: {_add_command(result.address, result.suggestions[0])}")


def print_scan(address: str, results: Sequence[AddressResult], as_json: bool) -> None:
    """Print the suggestions of all addresses, and why others that answered have none."""
    items = []
    refusals = []
    for result in results:
        items += [{"address": result.address, **asdict(each)} for each in result.suggestions]
        for each in result.discoveries:
            if not each.suggestions and not each.silent:
                refusal = {"collector": each.collector, "reason": each.reason}
                refusals.append({"address": result.address, **refusal})

    render.listing(
        "poller.discover/1",
        items,
        _SCAN_COLUMNS,
        as_json,
        address=address,
        scanned=len(results),
        nothing=refusals,
    )
    if as_json:
        return

    for refusal in refusals[:_MAX_REASONS]:
        render.note(f"{refusal['address']} {refusal['collector']}: {refusal['reason']}")
    if len(refusals) > _MAX_REASONS:
        render.note(f"and {len(refusals) - _MAX_REASONS:,} more; --json prints all")
    hosts = sum(bool(result.suggestions) for result in results)
    advice = "; --output hosts.csv writes them for poller device import" if hosts else ""
    render.note(f"{hosts:,} of {len(results):,} addresses have a target{advice}")


def _add_command(address: str, suggested: Suggested) -> str:
    """The command that adds a device with the suggested target."""
    words = ["poller device add NAME", address]
    if suggested.credential:
        credential = shlex.quote(suggested.credential)
        words.append(f"--credential {credential}")

    words.append(f"--collector {suggested.collector}")
    for key, value in suggested.options.items():
        assignment = f"{key}={option_text(value)}"
        quoted = shlex.quote(assignment)
        words.append(f"-o {quoted}")

    return " ".join(words)
