"""`poller snmp`: reads an SNMP agent directly, with no database and no Redis."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.arguments import completion, key_values
from poller.cli.output import render
from poller.domain.inventory import address_port, duration, host_port

if TYPE_CHECKING:
    from poller.cli.output.snmp_values import ValuePrinter
    from poller.collectors.credentials import Credential
    from poller.collectors.snmp.modules.oid_names import OidNames, OidScope
    from poller.collectors.snmp.options import SnmpOptions
    from poller.domain.inventory.host_port import HostPort

app = typer.Typer(no_args_is_help=True, help="Read an SNMP agent directly.")

#: The subtree that `walk` reads if none is named.
EVERYTHING = "mib-2"
#: The options of the collector that have a meaning without a target.
SESSION_OPTIONS = frozenset(
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
SYSTEM = {
    "sys_name": "1.3.6.1.2.1.1.5.0",
    "sys_descr": "1.3.6.1.2.1.1.1.0",
    "sys_object_id": "1.3.6.1.2.1.1.2.0",
    "sys_location": "1.3.6.1.2.1.1.6.0",
    "sys_up_time": "1.3.6.1.2.1.1.3.0",
}

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS[:PORT]", help="An IP address or a host name, and a port if it is not 161."
    ),
]
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
Numeric = Annotated[bool, typer.Option("--numeric", help="Print OIDs and numbers, no names.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per value.")]


@dataclass(slots=True)
class Agent:
    """The agent to read, its options and credential, and the number of packets sent."""

    address: str
    options: SnmpOptions
    credential: Credential | None
    budget_s: float
    sent: int = 0


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
    """Read a subtree and print every value as it arrives.

    The secret comes from POLLER_COLLECT_SECRET, from stdin when it is piped, or from a prompt.
    """
    from poller.cli.output.snmp_values import ValuePrinter

    place, options, names = _prepared(address, option, "modules")
    if where:
        subtrees = [where]
    elif "modules" in options.model_fields_set:
        subtrees = list(options.modules)
    else:
        subtrees = [EVERYTHING]

    scopes = [scope for text in subtrees for scope in names.scopes(text)]

    agent = _agent(place.host, options, timeout)
    printer = ValuePrinter(names, numeric, as_json)

    try:
        asyncio.run(_walk(agent, scopes, printer))
    finally:
        if agent.sent:
            printer.end(agent.sent)

    if not printer.printed:
        raise errors.NotFound(
            f"{address} has nothing under {', '.join(subtrees)}",
            hint=f"poller snmp walk {address} system{_options_text(option, 'modules')}",
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
    from poller.cli.output.snmp_values import ValuePrinter

    place, options, names = _prepared(address, option)
    words_by_oid = {names.instance(word): word for word in what}
    found = asyncio.run(_get(_agent(place.host, options, timeout), list(words_by_oid)))

    printer = ValuePrinter(names, numeric, as_json)
    for oid in words_by_oid:
        if oid in found:
            printer.line(oid, found[oid])

    missing = [word for oid, word in words_by_oid.items() if oid not in found]
    for word in missing:
        render.note(f"{word}: the agent has no such value")

    if missing:
        raise typer.Exit(1)


@app.command()
def identify(
    address: Address,
    option: Option = None,
    timeout: Timeout = "10s",
    as_json: render.Json = False,
) -> None:
    """Show what the agent is, and the modules that a target without -o modules would read."""
    place, options, names = _prepared(address, option, "match")
    rows = asyncio.run(_get(_agent(place.host, options, timeout), list(SYSTEM.values())))
    found = {key: rows[oid] for key, oid in SYSTEM.items() if oid in rows}
    item = _identity(address, options, names, found)
    render.record("poller.snmp.identify/1", item, as_json)

    if not as_json:
        modules = ",".join(item["modules"])
        same_options = _options_text(option, "match")
        render.note(f"next: poller collect snmp {address}{same_options} -o modules={modules}")


def _options_text(option: Sequence[str] | None, without: str) -> str:
    """The given options for another command, except the one named `without`."""
    words = [word for word in option or () if word.partition("=")[0] != without]
    return "".join(f" -o {shlex.quote(word)}" for word in words)


def _agent(address: str, options: SnmpOptions, timeout: str) -> Agent:
    """The agent with its credential; none where the options name a login of a file."""
    from poller.cli.arguments import secret_input
    from poller.collectors.snmp import SnmpCollector

    credential = secret_input.for_collector(SnmpCollector(), options)
    budget_s = duration.timeout_ms(timeout) / 1000
    return Agent(address, options, credential, budget_s)


async def _walk(agent: Agent, scopes: Sequence[OidScope], printer: ValuePrinter) -> None:
    """Print every value of the scopes as it arrives. Raises DeviceError."""
    from poller.collectors.snmp import terminal_session

    async with terminal_session.open_session(
        agent.address, agent.options, agent.credential, agent.budget_s
    ) as session:
        try:
            for scope in scopes:
                await session.walk(scope, printer.page)
        finally:
            agent.sent = session.sent


async def _get(agent: Agent, oids: Sequence[str]) -> Mapping[str, Any]:
    """The values by OID; values that the agent lacks are absent. Raises DeviceError."""
    from poller.collectors.snmp import terminal_session

    async with terminal_session.open_session(
        agent.address, agent.options, agent.credential, agent.budget_s
    ) as session:
        return await session.get(oids)


def _prepared(
    address: str, option: Sequence[str] | None, *more: str
) -> tuple[HostPort, SnmpOptions, OidNames]:
    """The agent's place, its checked options and the names of their modules.

    Options in `more` are allowed beside those of a session.

    Raises InvalidInput for an option that only a target has.
    """
    from poller.collectors import registry
    from poller.collectors.snmp.modules import module_catalog
    from poller.collectors.snmp.modules.oid_names import OidNames
    from poller.collectors.snmp.options import SnmpOptions

    place = host_port.parse(address)
    given = key_values.option_values(SnmpOptions, option or ())
    values = address_port.with_port(given, place.port, "port", "snmp")
    options: Any = registry.load().checked_options("snmp", values)
    assert isinstance(options, SnmpOptions)
    allowed = SESSION_OPTIONS.union(more)

    for name in sorted(options.model_fields_set - allowed):
        raise errors.InvalidInput(
            f"option {name} means nothing here", hint=f"it takes {', '.join(sorted(allowed))}"
        )

    return place, options, OidNames(module_catalog.modules(options.config))


def _identity(
    address: str, options: SnmpOptions, names: OidNames, found: Mapping[str, Any]
) -> dict[str, Any]:
    from poller.cli.output import snmp_values
    from poller.collectors.snmp.modules import device_table

    texts = dict.fromkeys(SYSTEM, "")
    for key, value in found.items():
        texts[key] = snmp_values.line(SYSTEM[key], value, names, numeric=True).text

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
    text = f"the longest pattern that matches its sysObjectID, of {entry.source}"
    if entry.descr:
        text += f', and "{entry.descr}" is in its sysDescr'
    return text
