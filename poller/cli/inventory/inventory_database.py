"""The database of the inventory commands: revision, author of changes, and option checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.cli.output import render
from poller.domain.inventory import draft
from poller.service import command_actor

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.collectors.api import Options
    from poller.collectors.registry import Registry
    from poller.db.inventory.inventory_feed import Author


def database(services: Services | None = None, *, create: bool = False) -> Engine:
    """The engine of a database at the right revision.

    A home's private SQLite file is upgraded; a configured database is only checked. With `create`,
    for commands that add the first rows, a missing private file is made.
    """
    from poller.db import engine as sql
    from poller.db import revision

    services = services or bootstrap.services()
    engine = services.engine
    if services.settings.database_url.get_secret_value():
        revision.check(engine)
        return engine

    if create:
        sql.create_file(engine)
    found = revision.current(engine)
    if found == revision.HEAD:
        return engine

    revision.refuse_newer(found)
    from poller.db import migrate

    migrate.upgrade(engine)
    verb = "created" if found is None else f"upgraded from {found}"
    path = services.settings.home / "poller.db"
    render.note(f"{verb} the database {path} (revision {revision.HEAD})")

    return engine


def author() -> Author:
    """The author of a change by command; without Redis it prints a note."""
    from poller.service import authors

    actor = command_actor.of_command()
    return authors.author(bootstrap.services(), actor, _note_not_woken)


def _note_not_woken() -> None:
    render.note(
        "note: the scheduler was not notified (Redis is not reachable); "
        "it will read the change when it runs"
    )


def stored_options(registry: Registry, collector: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Options in their stored form, checked by the collector.

    Raises InvalidInput, naming the option.
    """
    options_model(registry, collector)
    checked = registry.checked_options(collector, raw)
    return checked.model_dump(mode="json", exclude_unset=True)


def options_model(registry: Registry, collector: str) -> type[Options]:
    """The collector's options model. Raises UnknownCollector."""
    try:
        return registry.get(collector).Options
    except errors.InvalidInput as error:
        raise draft.UnknownCollector(*error.args) from None


def needs_credential(registry: Registry, collector: str, options: Mapping[str, Any]) -> bool:
    """True if the collector needs a credential with these options."""
    from poller.collectors import api

    return api.needs_credential(registry.get(collector), registry.options(collector, options))


def check_kind(registry: Registry, collector: str, credential: str, kind: str) -> None:
    """Raise InvalidInput unless the collector accepts a credential of that kind."""
    accepted = [model.kind for model in registry.get(collector).credentials]
    if accepted and kind not in accepted:
        raise errors.InvalidInput(
            f'collector {collector} cannot use credential "{credential}" of kind {kind}',
            hint="it takes " + ", ".join(accepted),
        )
