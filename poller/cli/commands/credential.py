"""`poller credential`: stored secrets. They are encrypted and never printed."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
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
from poller.security import vault_keys

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.collectors.credentials import Credential
    from poller.security.vault import Keyring

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

#: A secret below this length is noted when it is stored.
SHORT_SECRET = 8

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
    from poller.db.inventory import credential_rows

    naming.checked_name(name, "credential name")
    engine = inventory_database.database(create=True)
    if name in credential_rows.kinds(engine):
        raise errors.AlreadyExists(
            f'there is a credential named "{name}" already', hint=f"poller credential rotate {name}"
        )

    secret = _read(kind, username, field)
    sealed = _sealed(engine, secret, name)
    credential_rows.add(engine, name, secret.kind, sealed)  # not used yet: no worker to notify
    text = f"stored credential {name} ({secret.kind})"
    body = {"name": name, "kind": kind}
    then = f"poller device edit DEVICE --credential {name}"
    render.changed(text, "poller.credential/1", body, as_json, then)
    _warn_of_short(secret)


def _sealed(engine: Engine, secret: Credential, name: str) -> str:
    """The encrypted secret. Raises SecretKeyError if the other credentials have another key.

    Without this check only workers would detect a wrong key.
    """
    from poller.db.inventory import credential_rows

    ring = bootstrap.services().keyring
    ring.refuse_foreign(credential_rows.envelopes(engine))
    return ring.seal(secret.to_json(), name, secret.kind)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List credentials: their kinds, and how many devices and targets use each; no secrets."""
    from poller.db.inventory import credential_rows

    found = [asdict(each) for each in credential_rows.listing(inventory_database.database())]
    render.listing("poller.credential.list/1", found, _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no credentials yet: poller credential add NAME --kind community")

    problem = bootstrap.services().key_problem()
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
    from poller.db.inventory import credential_rows

    engine = inventory_database.database()
    secret = _read(kind or credential_rows.kind(engine, name), username, field)
    sealed = _sealed(engine, secret, name)
    used = credential_rows.rotate(engine, name, secret.kind, sealed, inventory_database.author())
    text = f"changed credential {name}, used by {formatting.counted(used, 'target')}"
    body = {"name": name, "kind": secret.kind, "targets": used}
    render.changed(text, "poller.credential.rotate/1", body, as_json)
    _warn_of_short(secret)


def _warn_of_short(secret: Credential) -> None:
    """Note secrets that are guessed quickly; the shortest are masked in their own polls only."""
    if any(len(text) < SHORT_SECRET for text in secret.secrets()):
        render.note(
            f"warning: a secret has fewer than {SHORT_SECRET} characters: it is guessed quickly, "
            "and only texts about its own polls mask it"
        )


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a credential that no device and no target uses."""
    from poller.db.inventory import credential_rows

    engine = inventory_database.database()
    credential_rows.kind(engine, name)
    confirm(f"remove credential {name}", 1, yes)
    credential_rows.remove(engine, name)
    render.changed(f"removed credential {name}", "poller.credential.rm/1", {"removed": 1}, as_json)


@app.command("rotate-key")
def rotate_key(as_json: Json = False) -> None:
    """Encrypt all credentials with a new key.

    The old key stays in the key file, for your backups.
    """
    from poller.db.inventory import credential_rows

    services = bootstrap.services()
    engine = inventory_database.database()
    if services.settings.secret_key:
        ring = services.keyring
        _refuse_single_key(ring)
    else:
        # A credential that does not open now would not open with the new key either.
        credential_rows.reseal(engine, partial(_opened, services.keyring))
        ring = _with_new_key(services.settings.home)

    count = credential_rows.reseal(engine, partial(_resealed, ring))

    body = {"credentials": count, "key_id": ring.first_id, "key": ring.source}
    counted = formatting.counted(count, "credential")
    text = f"encrypted {counted} with key {ring.first_id}; the key is in {ring.source}"
    render.changed(text, "poller.credential.rotate-key/1", body, as_json)


def _with_new_key(home: Path) -> Keyring:
    """Write a new first key to disk, before any credential is encrypted with it.

    In this order every credential stays readable after a crash: the old key is still in the file.
    """
    from poller.security import vault_keys
    from poller.security.vault import Keyring

    path = home / vault_keys.FILE_NAME
    vault_keys.replace(path, [vault_keys.new(), *vault_keys.read(path)])
    return Keyring.load(None, home)


def _opened(ring: Keyring, name: str, kind: str, envelope: str) -> str:
    """The same envelope. Raises SecretKeyError if the keyring cannot open it."""
    ring.open(envelope, name, kind)
    return envelope


def _resealed(ring: Keyring, name: str, kind: str, envelope: str) -> str:
    """The envelope sealed with the keyring's first key, in the current version."""
    from poller.security import vault

    if vault.is_current(envelope) and vault.sealed_with(envelope) == ring.first_id:
        return envelope
    return ring.seal(ring.open(envelope, name, kind), name, kind)


def _refuse_single_key(ring: Keyring) -> None:
    from poller.security import vault_keys

    if len(ring.ids) < 2:
        variable = vault_keys.ENVIRONMENT
        raise errors.SecretKeyError(
            f"{variable} holds one key only, so there is no new one to change to",
            hint=f"set {variable}=NEW,OLD everywhere (openssl rand -base64 32 makes one), "
            "then repeat",
        )


def _read(kind: str, username: str | None, field: list[str] | None) -> Credential:
    """The credential from the arguments and the typed or piped secret."""
    from poller.cli.arguments import secret_input

    plain = key_values.pairs(field or ())
    if username is not None:
        plain["username"] = username
    return secret_input.read(_model(kind), plain)


def _model(kind: str) -> type[Credential]:
    """The model of a credential kind. Plugins are loaded only for a kind that is not built in."""
    from poller.collectors.credentials import BUILT_IN

    models: dict[str, Any] = dict(BUILT_IN)
    if kind not in models:
        for collector in bootstrap.services().registry.collectors.values():
            for model in collector.credentials:
                models[model.kind] = model

    if kind not in models:
        raise errors.InvalidInput(
            f'unknown credential kind "{kind}"', hint="use " + ", ".join(sorted(models))
        )

    found: type[Credential] = models[kind]
    return found
