"""`poller token`: API tokens. A token is printed once, when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap
from poller.cli.arguments import completion, since
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, instant, moment
from poller.cli.output.render import Json
from poller.domain.access import accounts
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.access.token_rows import StoredToken

app = typer.Typer(
    no_args_is_help=True, help="Keys of scripts and scrapers for the API, each with its scopes."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("SCOPES", "scopes"),
    column("SITE", "site"),
    moment("EXPIRES", "expires_at"),
    moment("LAST USED", "last_used_at"),
    column("BY", "created_by", spare=1),
)


@app.command("add")
def add(
    name: Name,
    scope: Annotated[
        list[str], typer.Option(help="read, operate, inventory, admin or scrape. Repeat for more.")
    ],
    site: Annotated[
        str | None,
        typer.Option(help="Limit the token to this site.", autocompletion=completion.sites),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="When the token ends, such as 90d.", show_default="never"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it. It cannot be printed again."""
    from poller.service.access import api_tokens
    from poller.service.access.api_tokens import TokenDraft

    scopes = accounts.checked_scopes(scope)
    lives_ms = None if expires is None else since.length_ms("--expires", expires)
    draft = TokenDraft(name, scopes, site, lives_ms)
    made = api_tokens.add(_services(create=True), command_actor.of_command(), draft)
    if as_json:
        render.document("poller.token/1", {**_item(made.token), "token": made.value})
        return
    render.echo(made.value)
    render.note(f"made token {name} ({', '.join(scopes)}); it is not shown again")
    render.note('use: curl -H "Authorization: Bearer TOKEN" URL')


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List tokens with their scopes and last use, without their values."""
    from poller.service.access import api_tokens

    found = api_tokens.listing(_services(), command_actor.of_command())
    render.listing("poller.token.list/1", [_item(each) for each in found], _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no tokens yet: poller token add NAME --scope read")


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a token; servers refuse it within seconds."""
    from poller.service.access import api_tokens

    services = _services()
    actor = command_actor.of_command()
    api_tokens.get(services, actor, name)
    confirm(f"remove token {name}", 1, yes)
    api_tokens.remove(services, actor, name)
    render.changed(f"removed token {name}", "poller.token.rm/1", {"removed": 1}, as_json)


def _services(*, create: bool = False) -> Services:
    services = bootstrap.services()
    inventory_database.database(services, create=create)
    return services


def _item(token: StoredToken) -> dict[str, Any]:
    return {
        "name": token.name,
        "scopes": [scope.value for scope in token.scopes],
        "site": token.site,
        "created_by": token.created_by,
        "created_at": token.created_at,
        "expires_at": instant(token.expires_ms or 0),
        "last_used_at": instant(token.last_used_ms or 0),
    }
