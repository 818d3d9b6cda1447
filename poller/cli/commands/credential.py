"""`poller credential`: secrets go in, and never come out again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, key_values
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, moment
from poller.cli.output.render import Json
from poller.domain.inventory import naming
from poller.presentation import formatting

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.collectors.credentials import Credential

app = typer.Typer(
    no_args_is_help=True,
    help="Store the secrets devices ask for. They are encrypted, and never shown.",
)

NewName = Annotated[str, typer.Argument(metavar="NAME", help="The credential's name.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The credential's name.", autocompletion=completion.credentials
    ),
]
Kind = Annotated[str, typer.Option(help="community, login, snmpv3, token, or a plugin's.")]
Username = Annotated[str | None, typer.Option(help="Of a login or an SNMPv3 user.")]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        metavar="KEY=VALUE",
        help="Another field that is no secret, e.g. auth_protocol=SHA256.",
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
    """Store a credential; its secret is asked for, or read from stdin."""
    from poller.db.inventory import credential_rows

    naming.checked_name(name, "credential name")
    engine = inventory_database.database()
    if name in credential_rows.kinds(engine):
        raise errors.AlreadyExists(
            f'there is a credential named "{name}" already', hint=f"poller credential rotate {name}"
        )
    secret = _read(kind, username, field)
    sealed = _sealed(engine, secret, name)
    credential_rows.add(engine, name, secret.kind, sealed)  # nobody uses it yet: no one to wake
    then = f"poller device edit DEVICE --credential {name}"
    render.changed(
        f"stored credential {name} ({secret.kind})",
        "poller.credential/1",
        {"name": name, "kind": kind},
        as_json,
        then,
    )


def _sealed(engine: Engine, secret: Credential, name: str) -> str:
    """Encrypted with the key the other credentials were encrypted with: a wrong one is noticed here, not by workers."""
    from poller.db.inventory import credential_rows

    ring = bootstrap.services().keyring
    ring.refuse_foreign(credential_rows.envelopes(engine))
    return ring.seal(secret.to_json(), name)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List credentials: their kinds, and how many devices and targets use each; no secrets."""
    from poller.db.inventory import credential_rows

    found = [asdict(each) for each in credential_rows.listing(inventory_database.database())]
    render.listing("poller.credential.list/1", found, _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no credentials yet: poller credential add NAME --kind community")


@app.command("rotate")
def rotate(
    name: Name,
    kind: Annotated[str | None, typer.Option(help="A new kind.", show_default="as before")] = None,
    username: Username = None,
    field: Fields = None,
    as_json: Json = False,
) -> None:
    """Replace a credential's secret; workers use the new one with their next poll."""
    from poller.db.inventory import credential_rows

    engine = inventory_database.database()
    secret = _read(kind or credential_rows.kind(engine, name), username, field)
    sealed = _sealed(engine, secret, name)
    used = credential_rows.rotate(engine, name, secret.kind, sealed, inventory_database.wake_up())
    body = {"name": name, "kind": secret.kind, "targets": used}
    render.changed(
        f"changed credential {name}, used by {formatting.counted(used, 'target')}",
        "poller.credential.rotate/1",
        body,
        as_json,
    )


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a credential that nobody uses."""
    from poller.db.inventory import credential_rows

    engine = inventory_database.database()
    credential_rows.kind(engine, name)
    confirm(f"remove credential {name}", 1, yes)
    credential_rows.remove(engine, name)
    render.changed(f"removed credential {name}", "poller.credential.rm/1", {"removed": 1}, as_json)


@app.command("rotate-key")
def rotate_key(as_json: Json = False) -> None:
    """Encrypt everything with a new key. The old key stays readable, for your backups."""
    from poller.cli.commands import credential_rekey

    done = credential_rekey.run(bootstrap.services(), inventory_database.database())
    body = {"credentials": done.credentials, "key_id": done.key_id, "key": done.place}
    text = f"encrypted {formatting.counted(done.credentials, 'credential')} with key {done.key_id}; the key is in {done.place}"
    render.changed(text, "poller.credential.rotate-key/1", body, as_json)


def _read(kind: str, username: str | None, field: list[str] | None) -> Credential:
    from poller.cli.arguments import secret_input

    plain = key_values.pairs(field or ())
    if username is not None:
        plain["username"] = username
    return secret_input.read(_model(kind), plain)


def _model(kind: str) -> type[Credential]:
    """The model of a kind; plugins are only asked when it is not one of ours."""
    from poller.collectors.credentials import BUILT_IN

    known: dict[str, Any] = dict(BUILT_IN)
    if kind not in known:
        for collector in bootstrap.services().registry.collectors.values():
            known.update({model.kind: model for model in collector.credentials})
    if kind not in known:
        raise errors.InvalidInput(
            f'unknown credential kind "{kind}"', hint="use " + ", ".join(sorted(known))
        )
    model: type[Credential] = known[kind]
    return model
