"""`poller user`: people who may log in to the page and the API with a password."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import password_input
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column, instant, moment
from poller.cli.output.render import Json
from poller.domain.access import accounts
from poller.domain.access.scopes import Role
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.access.user_rows import StoredUser

app = typer.Typer(
    no_args_is_help=True,
    help="People who may log in to the page and the API. The first user makes the page ask.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
RoleOption = Annotated[
    Role, typer.Option(help="viewer sees, operator changes devices, admin manages users too.")
]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("ROLE", "role"),
    column("ENABLED", "enabled"),
    moment("LAST LOGIN", "last_login_at"),
    moment("CHANGED", "updated_at", spare=1),
)


@app.command("add")
def add(
    name: Name,
    role: RoleOption = Role.VIEWER,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Do nothing if the user exists.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add a user. The password is read from a prompt, or from stdin when it is piped."""
    from poller.service.access import user_accounts

    services = _services(create=True)
    actor = command_actor.of_command()
    accounts.checked_user_name(name)
    present = user_accounts.listing(services, actor)
    if any(each.name == name for each in present):
        if if_missing:
            render.changed(f"user {name} exists", "poller.user/1", {"name": name}, as_json)
            return
        raise errors.AlreadyExists(
            f'there is a user named "{name}" already', hint=f"poller user edit {name}"
        )
    password = password_input.new_password(name)
    made = user_accounts.add(services, actor, name, role, password)
    text = f"added user {name} ({role.value})"
    render.changed(text, "poller.user/1", _item(made), as_json)
    if not present:
        render.notes(user_accounts.first_user_notes(services.settings))


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List users with their roles and last log-ins."""
    from poller.service.access import user_accounts

    found = user_accounts.listing(_services(), command_actor.of_command())
    render.listing("poller.user.list/1", [_item(each) for each in found], _COLUMNS, as_json)
    if not found and not as_json:
        render.note("no users yet: poller user add NAME --role admin")


@app.command("edit")
def edit(
    name: Name,
    role: Annotated[Role | None, typer.Option(help="A new role.", show_default=False)] = None,
    enabled: Annotated[
        bool | None,
        typer.Option("--enable/--disable", help="May log in, or not.", show_default=False),
    ] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a new password; it ends all sessions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change the role or the password of a user, or disable it."""
    from poller.service.access import user_accounts
    from poller.service.access.user_accounts import UserChanges

    if role is None and enabled is None and not password:
        raise errors.InvalidInput(
            "nothing to change", hint="give --role, --enable, --disable or --password"
        )
    services = _services()
    actor = command_actor.of_command()
    user_accounts.get(services, actor, name)
    typed = password_input.new_password(name) if password else None
    changed = user_accounts.edit(services, actor, name, UserChanges(role, enabled, typed))
    render.changed(f"changed user {name}", "poller.user/1", _item(changed), as_json)


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a user and end its sessions."""
    from poller.service.access import user_accounts

    services = _services()
    actor = command_actor.of_command()
    user_accounts.get(services, actor, name)
    confirm(f"remove user {name}", 1, yes)
    user_accounts.remove(services, actor, name)
    render.changed(f"removed user {name}", "poller.user.rm/1", {"removed": 1}, as_json)


def _services(*, create: bool = False) -> Services:
    services = bootstrap.services()
    inventory_database.database(services, create=create)
    return services


def _item(user: StoredUser) -> dict[str, Any]:
    item = asdict(user)
    del item["id"]
    item["role"] = user.role.value
    item["last_login_at"] = instant(item.pop("last_login_ms") or 0)
    return item
