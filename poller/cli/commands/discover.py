"""`poller discover`: the targets that installed collectors suggest for an address."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, key_values
from poller.cli.direct import discovery, plugin_runner
from poller.cli.direct.discovery import NO_LOGIN, Discovery, Login, Suggested
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, option_text
from poller.domain.inventory import duration

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential
    from poller.collectors.registry import Registry

_COLUMNS = (
    column("COLLECTOR", "collector", fit=Fit.WHOLE),
    column("OPTIONS", "options", fit=Fit.WRAP),
    column("WHY", "reason", fit=Fit.WRAP),
)


def command(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="An IP address or a host name.")
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
            help="A stored credential to try. Repeat for more.",
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
    timeout: Annotated[str, typer.Option(help="When to give up.")] = "10s",
    as_json: render.Json = False,
) -> None:
    """Ask each collector that can discover for targets that suit an address. Nothing is stored.

    Only named credentials are sent. With one --collector and no credential the secret is read as by
    `poller collect`.
    """
    from poller.collectors import registry

    found = registry.load()
    chosen = _chosen(found, collector or ())
    single = chosen[0] if collector and len(chosen) == 1 else None
    options = _options(found, chosen, single, option or ())
    logins = _logins(chosen, single, credential or (), options)
    chosen.sort(key=lambda each: logins[each.name] == [NO_LOGIN])  # a login reads more

    budget_s = duration.timeout_ms(timeout) / 1000
    most_logins = max(map(len, logins.values()), default=1)
    work = discovery.discover_all(address, chosen, options, logins, budget_s)
    results = plugin_runner.run(work, budget_s * most_logins + plugin_runner.CLEAN_UP_S)
    _print(address, results, as_json)


def _chosen(found: Registry, names: Sequence[str]) -> list[Collector]:
    """The named collectors, else all that can discover. Raises InvalidInput for one that cannot."""
    from poller.collectors.api import Discovers

    able = {}
    for name, each in found.collectors.items():
        if isinstance(each, Discovers):
            able[name] = each

    for name in names:
        if found.get(name) and name not in able:
            raise errors.InvalidInput(
                f"collector {name} cannot discover", hint="these can: " + ", ".join(able)
            )

    if not able:
        raise errors.InvalidInput("no installed collector can discover", hint="poller collectors")

    unique = dict.fromkeys(names or able)
    return [able[name] for name in unique]


def _options(
    found: Registry, chosen: Sequence[Collector], single: Collector | None, words: Sequence[str]
) -> dict[str, Any]:
    """The checked options by collector; one whose required options are missing is absent."""
    if words and single is None:
        raise errors.InvalidInput("--option is for one collector", hint="name it with --collector")

    values = key_values.option_values(single.Options, words) if single else {}

    options = {}
    for each in chosen:
        if values or not _has_required_option(each):
            options[each.name] = found.checked_options(each.name, values)

    return options


def _has_required_option(collector: Collector) -> bool:
    return any(field.is_required() for field in collector.Options.model_fields.values())


def _logins(
    chosen: Sequence[Collector],
    single: Collector | None,
    names: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, list[Login]]:
    """The logins that each collector may try: the named credentials of a kind it takes."""
    from poller.cli.arguments import secret_input

    if not names and single is not None and single.name in options:
        credential = secret_input.for_collector(single, options[single.name])
        return {single.name: [Login(credential=credential)]}

    opened = [Login(name, _open(name)) for name in names]
    return {each.name: _suitable(each, opened, options.get(each.name)) for each in chosen}


def _suitable(collector: Collector, opened: Sequence[Login], options: Any) -> list[Login]:
    """The logins a collector can use; NO_LOGIN if it needs none."""
    from poller.collectors.api import needs_credential

    suitable = [login for login in opened if isinstance(login.credential, collector.credentials)]
    if suitable:
        return suitable

    needed = options is not None and needs_credential(collector, options)
    return [] if needed else [NO_LOGIN]


def _open(name: str) -> Credential:
    """The decrypted stored credential. Raises NotFound."""
    from poller.cli.inventory import inventory_database
    from poller.collectors import credentials
    from poller.db import engine
    from poller.db.inventory import inventory_feed, lookup

    services = bootstrap.services()
    database = inventory_database.database(services)

    with engine.single_read(database) as conn:
        key = lookup.credential_id(conn, name)

    sealed = inventory_feed.credential(database, key or 0)
    if sealed is None:
        raise errors.NotFound(f'no credential named "{name}"', hint="poller credential list")

    models = {}
    for collector in services.registry.collectors.values():
        for model in collector.credentials:
            models[model.kind] = model

    text = services.keyring.open(sealed.envelope, sealed.name, sealed.kind)
    return credentials.from_json(text, models)


def _print(address: str, results: Sequence[Discovery], as_json: bool) -> None:
    """Print suggestions, reasons for none, and the command that adds the first."""
    suggestions: list[Suggested] = []
    silent = []
    for result in results:
        suggestions += result.suggestions
        if not result.suggestions:
            silent.append({"collector": result.collector, "reason": result.reason})

    items = [asdict(each) for each in suggestions]
    render.listing("poller.discover/1", items, _COLUMNS, as_json, address=address, nothing=silent)
    if not as_json:
        for each in silent:
            render.note(f"{each['collector']}: {each['reason']}")
        if suggestions:
            render.note(f"next: {_add_command(address, suggestions[0])}")

    if not suggestions:
        raise typer.Exit(1)


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
