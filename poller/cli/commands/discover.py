"""`poller discover`: what is at an address, as far as the installed collectors can tell, and which targets suit it."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli import plugin_runner
from poller.cli.arguments import completion
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column, plain, word
from poller.domain.inventory import duration

if TYPE_CHECKING:
    from poller.collectors.api import Collector, Credential, Discovers, Poll
    from poller.collectors.registry import Registry

    Named = tuple[
        str, Credential | None
    ]  # as it is stored, if it is; and what is in it, if anything is needed

#: Who suggests more than this for one address will not end by itself.
_MOST = 100

_COLUMNS = (
    column("COLLECTOR", "collector", fit=Fit.WHOLE),
    Column("OPTIONS", lambda item: plain(item["options"]), fit=Fit.WRAP),
    column("WHY", "reason", fit=Fit.WRAP),
)

_NO_LOGIN: Named = ("", None)


def command(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="An IP address or a host name.")
    ],
    collector: Annotated[
        list[str] | None,
        typer.Option(
            help="Ask only this one; may be given again.", autocompletion=completion.collectors
        ),
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            help="A stored credential to try; may be given again.",
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
    """Ask each collector that can discover what it would read there. Nothing is stored.

    Only credentials that are named are sent. With one --collector and none, the secret is taken as by `poller collect`.
    """
    from poller.collectors import registry

    found = registry.load()
    asked = _asked(found, collector or ())
    chosen = asked[0] if collector and len(asked) == 1 else None
    options = _options(found, asked, chosen, option or ())
    logins = _logins(asked, chosen, credential or (), options)
    budget_s = duration.timeout_ms(timeout) / 1000
    asked.sort(key=lambda each: logins[each.name] == [_NO_LOGIN])  # who logs in knows more
    longest_s = budget_s * max(map(len, logins.values()), default=1)
    answers = plugin_runner.run(
        _ask_all(address, asked, options, logins, budget_s), longest_s + plugin_runner.TIDY_S
    )
    items = [item for _, suggested, _ in answers for item in suggested]
    silent = [
        {"collector": name, "reason": reason}
        for name, suggested, reason in answers
        if not suggested
    ]
    render.listing("poller.discover/1", items, _COLUMNS, as_json, address=address, nothing=silent)
    if not as_json:
        _say(address, items, silent, logins)
    if not items:
        raise typer.Exit(1)


def _asked(found: Registry, names: Sequence[str]) -> list[Collector]:
    """Those named, else all that can. Raises InvalidInput for one that cannot."""
    from poller.collectors.api import Discovers

    able = {name: each for name, each in found.collectors.items() if isinstance(each, Discovers)}
    for name in names:
        if found.get(name) and name not in able:
            raise errors.InvalidInput(
                f"collector {name} cannot discover", hint="these can: " + ", ".join(able)
            )
    if not able:
        raise errors.InvalidInput("no installed collector can discover", hint="poller collectors")
    return [able[name] for name in dict.fromkeys(names)] or list(able.values())


def _options(
    found: Registry, asked: Sequence[Collector], chosen: Collector | None, words: Sequence[str]
) -> dict[str, Any]:
    from poller.cli.commands import collect

    if words and chosen is None:
        raise errors.InvalidInput("--option is for one collector", hint="name it with --collector")
    given = collect.values(chosen.Options, words) if chosen else {}
    return {
        each.name: found.checked_options(each.name, given)
        for each in asked
        if given or _needs_nothing(each)
    }


def _needs_nothing(collector: Collector) -> bool:
    return not any(field.is_required() for field in collector.Options.model_fields.values())


def _logins(
    asked: Sequence[Collector],
    chosen: Collector | None,
    names: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, list[Named]]:
    """What each may log in with: the named credentials of a kind it takes."""
    from poller.cli.commands import collect

    if not names and chosen is not None and chosen.name in options:
        return {chosen.name: [("", collect.credential_for(chosen, options[chosen.name]))]}
    opened: list[Named] = [(name, _open(name)) for name in names]
    return {each.name: _suited(each, opened, options.get(each.name)) for each in asked}


def _suited(collector: Collector, opened: Sequence[Named], options: Any) -> list[Named]:
    from poller.collectors.api import needs_credential

    suited = [one for one in opened if isinstance(one[1], collector.credentials)]
    return (
        suited
        if suited or (options is not None and needs_credential(collector, options))
        else [_NO_LOGIN]
    )


def _open(name: str) -> Credential:
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
    models = {
        model.kind: model
        for each in services.registry.collectors.values()
        for model in each.credentials
    }
    return credentials.from_json(services.keyring.open(sealed.envelope, sealed.name), models)


async def _ask_all(
    address: str,
    asked: Sequence[Collector],
    options: Mapping[str, Any],
    logins: Mapping[str, Sequence[Named]],
    budget_s: float,
) -> list[tuple[str, list[dict[str, Any]], str]]:
    """Of each: its name, what it suggests, and why nothing. All at the same time."""
    work = [
        _ask(address, each, options.get(each.name), logins[each.name], budget_s) for each in asked
    ]
    return [
        (each.name, *answer)
        for each, answer in zip(asked, await asyncio.gather(*work), strict=True)
    ]


async def _ask(
    address: str, collector: Any, options: Any, logins: Sequence[Named], budget_s: float
) -> tuple[list[dict[str, Any]], str]:
    if options is None:
        return [], "some of its options must be given"
    reason = "no credential of a kind it takes was named" if not logins else ""
    for name, credential in logins:
        try:
            found = await _suggestions(address, collector, options, credential, budget_s)
        except errors.DeviceError as error:
            reason = str(error)
            continue
        if found:
            return [{**each, "credential": name} for each in found], ""
        reason = "it suggests nothing"
    return [], reason


async def _suggestions(
    address: str, collector: Any, options: Any, credential: Credential | None, budget_s: float
) -> list[dict[str, Any]]:
    """Raises DeviceError, whatever the collector does."""
    from poller.collectors import poll_runner
    from poller.collectors.api import Poll

    poll = Poll(
        0, address, address, options, credential, asyncio.get_running_loop().time() + budget_s
    )
    finding = asyncio.create_task(_find(collector, poll))
    _, late = await asyncio.wait([finding], timeout=budget_s)
    if late:
        finding.cancel()
        raise errors.DeviceTimeout(f"no answer within {budget_s:g} s")
    try:
        return finding.result()
    except errors.DeviceError as error:
        texts = [
            poll_runner.scrub(text, credential) for text in (error.message, error.cause, error.hint)
        ]
        raise errors.DeviceError(*texts) from None


async def _find(collector: Any, poll: Poll) -> list[dict[str, Any]]:
    """What it suggests, as far as anybody could want it. Raises DeviceError, whatever the collector does."""
    from poller import plugins
    from poller.collectors.api import Suggestion

    finder: Discovers = collector
    found: list[dict[str, Any]] = []
    try:
        async for each in finder.discover(poll):
            if not isinstance(each, Suggestion):
                raise TypeError(f"it suggests a {type(each).__name__}, not an api.Suggestion")
            options = json.loads(json.dumps(dict(each.options)))
            found.append(
                {"collector": collector.name, "options": options, "reason": str(each.reason)}
            )
            if len(found) == _MOST:
                break
    except errors.DeviceError:
        raise
    except BaseException as error:  # noqa: BLE001  a plugin may raise anything, SystemExit too
        text = plugins.error_text(error)
        raise errors.CollectorCrashed(f"collector {collector.name} crashed", cause=text) from None
    return found


def _say(
    address: str,
    items: Sequence[Mapping[str, Any]],
    silent: Sequence[Mapping[str, str]],
    logins: Mapping[str, Any],
) -> None:
    for each in silent:
        render.note(f"{each['collector']}: {each['reason']}")
    if items:
        best = items[0]
        login = f" --credential {shlex.quote(best['credential'])}" if best["credential"] else ""
        words = "".join(
            f" -o {shlex.quote(f'{key}={word(value)}')}" for key, value in best["options"].items()
        )
        render.note(
            f"next: poller device add NAME {address}{login} --collector {best['collector']}{words}"
        )
