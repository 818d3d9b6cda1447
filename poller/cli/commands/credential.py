"""`poller credential`: stored secrets. They are encrypted and never printed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap
from poller.cli.arguments import completion, key_values
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, moment
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.security import vault_keys
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.collectors.credentials import Credential
    from poller.service.inventory.credential_actions import ReadSecret

app = typer.Typer(
    no_args_is_help=True,
    help="Store the secrets that devices ask for. They are encrypted and never shown.",
)

NewName = Annotated[str, typer.Argument(metavar="NAME", help="The credential's name.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The credential's name.", autocompletion=completion.credentials
    ),
]
Kind = Annotated[str, typer.Option(help="community, login, snmpv3, token, or a plugin's.")]
Username = Annotated[str | None, typer.Option(help="User name of a login or an SNMPv3 user.")]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        metavar="KEY=VALUE",
        help="Another field that is not secret, for example auth_protocol=SHA256.",
    ),
]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("KIND", "kind"),
    column("DEVICES", "devices", right=True),
    column("TARGETS", "targets", right=True),
    moment("CHANGED", "updated_at"),
)


@app.command("add")
def add(
    name: NewName,
    kind: Kind,
    username: Username = None,
    field: Fields = None,
    as_json: Json = False,
) -> None:
    """Store a credential. Its secret is read from a prompt, or from stdin when it is piped."""
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services, create=True)
    read = _reader(username, field)
    notes = credential_actions.add(services, inventory_database.author(), name, kind, read)
    text = f"stored credential {name} ({kind})"
    body = {"name": name, "kind": kind}
    then = f"poller device edit DEVICE --credential {name}"
    render.changed(text, "poller.credential/1", body, as_json, then)
    render.notes(notes, "warning")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List credentials: their kinds, and how many devices and targets use each; no secrets."""
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services)
    credentials = credential_actions.listing(services, command_actor.of_command())
    found = [asdict(each) for each in credentials]
    render.listing("poller.credential.list/1", found, _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no credentials yet: poller credential add NAME --kind community")

    problem = services.key_problem()
    if problem:
        render.note(f"warning: {problem}; {vault_keys.RIGHT_KEY_HINT}")


@app.command("rotate")
def rotate(
    name: Name,
    kind: Annotated[str | None, typer.Option(help="A new kind.", show_default="as before")] = None,
    username: Username = None,
    field: Fields = None,
    as_json: Json = False,
) -> None:
    """Replace a credential's secret; workers use the new one with their next poll."""
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services)
    author = inventory_database.author()
    done = credential_actions.rotate(services, author, name, kind, _reader(username, field))
    text = f"changed credential {name}, used by {formatting.counted(done.targets, 'target')}"
    body = {"name": name, "kind": done.kind, "targets": done.targets}
    render.changed(text, "poller.credential.rotate/1", body, as_json)
    render.notes(done.notes, "warning")


@app.command("edit")
def edit(
    name: Name, username: Username = None, field: Fields = None, as_json: Json = False
) -> None:
    """Change fields of a credential that are not secret; its secret stays as it is."""
    from poller.cli.arguments import secret_input
    from poller.service.access import credential_editing
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services)
    plain = _plain(username, field)
    present = credential_actions.show(services, command_actor.of_command(), name)
    secret_input.refuse_wrong_fields(credential_actions.model(services, present.kind), plain)
    done = credential_editing.edit(services, inventory_database.author(), name, plain)
    text = f"changed credential {name}, used by {formatting.counted(done.targets, 'target')}"
    body = {"name": name, "kind": done.kind, "targets": done.targets}
    render.changed(text, "poller.credential.edit/1", body, as_json)
    render.notes(done.notes, "warning")


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a credential that no device and no target uses."""
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services)
    credential_actions.show(services, command_actor.of_command(), name)  # raises NotFound
    confirm(f"remove credential {name}", 1, yes)
    credential_actions.remove(services, inventory_database.author(), name)
    render.changed(f"removed credential {name}", "poller.credential.rm/1", {"removed": 1}, as_json)


@app.command("rotate-key")
def rotate_key(as_json: Json = False) -> None:
    """Encrypt all credentials with a new key.

    The old key stays in the key file, for your backups.
    """
    from poller.service.inventory import credential_actions

    services = bootstrap.services()
    inventory_database.database(services)
    done = credential_actions.rotate_key(services, inventory_database.author())

    body = {"credentials": done.credentials, "key_id": done.key_id, "key": done.source}
    counted = formatting.counted(done.credentials, "credential")
    text = f"encrypted {counted} with key {done.key_id}; the key is in {done.source}"
    render.changed(text, "poller.credential.rotate-key/1", body, as_json)


def _reader(username: str | None, field: list[str] | None) -> ReadSecret:
    """The reader of a credential: from the arguments and the typed or piped secret."""
    plain = _plain(username, field)

    def read(model: type[Credential]) -> Credential:
        from poller.cli.arguments import secret_input

        return secret_input.read(model, plain)

    return read


def _plain(username: str | None, field: list[str] | None) -> dict[str, str]:
    """The fields of the arguments, which are not secret."""
    plain = key_values.pairs(field or ())
    if username is not None:
        plain["username"] = username
    return plain
