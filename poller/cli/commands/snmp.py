"""`poller snmp walk|get|identify`: ask an agent directly, with names instead of numbers; no database, no Redis."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.cli.output import render
from poller.domain.inventory import duration, naming
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.collectors.credentials import Credential
    from poller.collectors.snmp.modules.oid_names import OidNames, OidScope
    from poller.collectors.snmp.options import SnmpOptions

app = typer.Typer(no_args_is_help=True, help="Ask an SNMP agent directly.")

T = TypeVar("T")

#: What `walk` reads when nothing is named.
EVERYTHING = "mib-2"
#: Of the collector's options, those that mean something to somebody who asks but once.
TALKING = frozenset(
    {
        "port",
        "version",
        "timeout",
        "retries",
        "max_repetitions",
        "engine",
        "context",
        "config",
        "auth",
    }
)
PROGRESS_EVERY_S = 0.5
SYSTEM = {
    "sys_name": "1.3.6.1.2.1.1.5.0",
    "sys_descr": "1.3.6.1.2.1.1.1.0",
    "sys_object_id": "1.3.6.1.2.1.1.2.0",
    "sys_location": "1.3.6.1.2.1.1.6.0",
    "sys_up_time": "1.3.6.1.2.1.1.3.0",
}

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="An IP address or a host name.")]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="An option of the snmp collector: version, port, engine, config ...",
    ),
]
Timeout = Annotated[str, typer.Option(help="When to give up.")]
Numeric = Annotated[bool, typer.Option("--numeric", help="Print numbers, translate nothing.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per value.")]


@app.command()
def walk(
    address: Address,
    where: Annotated[
        str,
        typer.Argument(
            metavar="[OID|NAME]",
            help="A subtree, a name of a loaded module (ifInOctets), or a module (if_mib).",
            autocompletion=completion.snmp_names,
            show_default="what -o modules names, else mib-2",
        ),
    ] = "",
    option: Option = None,
    numeric: Numeric = False,
    timeout: Timeout = "5m",
    as_json: JsonLines = False,
) -> None:
    """Read a subtree and print every value as it comes.

    The secret is taken from POLLER_COLLECT_SECRET, else from stdin when it is piped, else asked for.
    """
    options, names = _prepared(option, "modules")
    sought = (
        [where]
        if where
        else list(options.modules)
        if "modules" in options.model_fields_set
        else [EVERYTHING]
    )
    places = [place for text in sought for place in names.scopes(text)]
    asked = Asked(address, options, _credential(options), timeout)
    printer = Printer(names, numeric, as_json)
    try:
        _run(_walk(asked, places, printer))
    finally:
        if asked.sent:
            printer.end(asked.sent)
    if not printer.printed:
        raise errors.NotFound(
            f"{address} has nothing under {', '.join(sought)}",
            hint=f"poller snmp walk {address} system{_again(option, 'modules')}",
        )


@app.command()
def get(
    address: Address,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="OID|NAME...",
            help="Values by OID, or by name and index: ifInOctets.3, sysDescr.",
            autocompletion=completion.snmp_names,
        ),
    ],
    option: Option = None,
    numeric: Numeric = False,
    timeout: Timeout = "10s",
    as_json: JsonLines = False,
) -> None:
    """Read single values. Exits with 1 when the agent lacks one of them."""
    options, names = _prepared(option)
    wanted = {names.instance(text): text for text in what}
    asked = Asked(address, options, _credential(options), timeout)
    found = _run(_get(asked, list(wanted)))
    printer = Printer(names, numeric, as_json)
    for number in wanted:
        if number in found:
            printer.line(number, found[number])
    missing = [text for number, text in wanted.items() if number not in found]
    for text in missing:
        render.note(f"{text}: the agent has no such value")
    if missing:
        raise typer.Exit(1)


@app.command()
def identify(
    address: Address,
    option: Option = None,
    timeout: Timeout = "10s",
    as_json: render.Json = False,
) -> None:
    """What is it, and which modules would a target without any get?"""
    options, names = _prepared(option, "match")
    found = _run(
        _get(Asked(address, options, _credential(options), timeout), list(SYSTEM.values()))
    )
    item = _identity(
        address, options, names, {key: found[oid] for key, oid in SYSTEM.items() if oid in found}
    )
    render.record("poller.snmp.identify/1", item, as_json)
    if not as_json:
        chosen = ",".join(item["modules"])
        render.note(
            f"next: poller collect snmp {address}{_again(option, 'match')} -o modules={chosen}"
        )


def _again(option: Sequence[str] | None, *but: str) -> str:
    """The same options for another command, but for those of these names."""
    return "".join(
        f" -o {shlex.quote(word)}" for word in option or () if word.partition("=")[0] not in but
    )


class Asked:
    """Whom, how, and how many requests it took."""

    def __init__(
        self, address: str, options: SnmpOptions, credential: Credential | None, timeout: str
    ) -> None:
        self.address, self.options, self.credential = (
            naming.checked_address(address),
            options,
            credential,
        )
        self.budget_s = duration.timeout_ms(timeout) / 1000
        self.sent = 0


class Printer:
    """Values in the form their reader wants, as they come; how far we are goes to stderr, on a terminal."""

    def __init__(self, names: OidNames, numeric: bool, as_json: bool) -> None:
        from poller.cli.output import snmp_values

        self._names, self._numeric, self._as_json = names, numeric, as_json
        self._make = snmp_values.line
        self._people = sys.stdout.isatty()
        self._progress = sys.stderr.isatty() and not self._people and not render.accessible()
        self._began = self._said = time.monotonic()
        self.printed = 0

    def line(self, oid: str, value: Any) -> None:
        made = self._make(oid, value, self._names, self._numeric)
        if self._as_json:
            import json

            render.echo(json.dumps(made.fields(), ensure_ascii=False))
        elif self._people or render.accessible():
            render.echo(made.for_people())
        else:
            if not self.printed:
                render.echo("\t".join(("oid", "name", "type", "value")))
            render.echo("\t".join(made.cells()))
        self.printed += 1

    def page(self, rows: Sequence[tuple[str, Any]]) -> None:
        """What was read is seen at once, also by the next program in the pipe."""
        for row in rows:
            self.line(*row)
        sys.stdout.flush()
        now = time.monotonic()
        if self._progress and now - self._said > PROGRESS_EVERY_S:
            self._said = now
            sys.stderr.write(f"\r{self.printed:,} values ")

    def end(self, sent: int) -> None:
        if self._progress and self._said != self._began:
            sys.stderr.write("\r")
        took_s = time.monotonic() - self._began
        render.note(
            f"{formatting.counted(self.printed, 'value')} in {formatting.counted(sent, 'packet')}, {took_s:.1f} s"
        )


async def _walk(asked: Asked, places: Sequence[OidScope], printer: Printer) -> None:
    from poller.collectors.snmp import terminal_session

    async with terminal_session.open_session(
        asked.address, asked.options, asked.credential, asked.budget_s
    ) as agent:
        try:
            for place in places:
                await agent.walk(place, printer.page)
        finally:
            asked.sent = agent.sent


async def _get(asked: Asked, oids: Sequence[str]) -> Mapping[str, Any]:
    from poller.collectors.snmp import terminal_session

    async with terminal_session.open_session(
        asked.address, asked.options, asked.credential, asked.budget_s
    ) as agent:
        return await agent.get(oids)


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def _prepared(option: Sequence[str] | None, *more: str) -> tuple[SnmpOptions, OidNames]:
    """The options as a target would have them, and the names their modules know. `more` may be given, too."""
    from poller.cli.commands import collect
    from poller.collectors import registry
    from poller.collectors.snmp.modules import module_catalog
    from poller.collectors.snmp.modules.oid_names import OidNames
    from poller.collectors.snmp.options import SnmpOptions

    options: Any = registry.load().checked_options(
        "snmp", collect.values(SnmpOptions, option or ())
    )
    assert isinstance(options, SnmpOptions)
    for name in sorted(options.model_fields_set - TALKING - {*more}):
        raise errors.InvalidInput(
            f"option {name} means nothing here",
            hint=f"it takes {', '.join(sorted({*TALKING, *more}))}",
        )
    return options, OidNames(module_catalog.modules(options.config))


def _credential(options: SnmpOptions) -> Credential | None:
    """None where the options name a login of a file."""
    from poller.cli.commands import collect
    from poller.collectors.snmp import SnmpCollector

    return collect.credential_for(SnmpCollector(), options)


def _identity(
    address: str, options: SnmpOptions, names: OidNames, found: Mapping[str, Any]
) -> dict[str, Any]:
    from poller.cli.output import snmp_values
    from poller.collectors.snmp.modules import device_table

    lines = {
        key: snmp_values.line(SYSTEM[key], value, names, numeric=True)
        for key, value in found.items()
    }
    texts = {key: lines[key].text if key in lines else "" for key in SYSTEM}
    choice = device_table.table(options.match).choose(texts["sys_object_id"], texts["sys_descr"])
    entry = choice.entry
    return {
        "address": address,
        **texts,
        "device": entry.device if entry else "",
        "matched": entry.pattern if entry else "",
        "because": _why(entry),
        "modules": list(choice.modules),
    }


def _why(entry: Any) -> str:
    if entry is None:
        return "no pattern matches its sysObjectID: the base alone"
    text = f', and "{entry.descr}" is in its sysDescr' if entry.descr else ""
    return f"the longest pattern that matches its sysObjectID, of {entry.source}{text}"
