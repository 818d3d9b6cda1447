"""What inventory commands stand on: a database at the right revision, a wake-up that may fail, option checks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.cli.output import render
from poller.domain.inventory import draft

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.collectors.api import Options
    from poller.collectors.registry import Registry
    from poller.db.inventory.inventory_feed import Notify


def database(services: Services | None = None) -> Engine:
    """The engine, its schema checked. The private SQLite file of a home is made and upgraded on the way."""
    from poller.db import revision

    services = services or bootstrap.services()
    engine = services.engine
    if services.settings.database_url.get_secret_value():
        revision.check(engine)
    elif (found := revision.current(engine)) != revision.HEAD:
        revision.refuse_newer(found)
        from poller.db import migrate

        migrate.upgrade(engine)
        verb = "created" if found is None else f"upgraded from {found}"
        render.note(
            f"{verb} the database {services.settings.home / 'poller.db'} (revision {revision.HEAD})"
        )
    return engine


def wake_up() -> Notify:
    """Tell the scheduler, or tell the operator why that did not work: the change is stored anyway."""
    return partial(_wake, bootstrap.services())


def _wake(services: Services, version: int) -> None:
    try:
        services.notify(version)
    except errors.StoreError:
        render.note(
            "note: no scheduler could be told (Redis is not reachable); it will see the change when it runs"
        )


def stored_options(registry: Registry, collector: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Options checked by the collector, as they go into the database. Raises InvalidInput, naming the option."""
    options_model(registry, collector)
    return registry.checked_options(collector, raw).model_dump(mode="json", exclude_unset=True)


def options_model(registry: Registry, collector: str) -> type[Options]:
    try:
        return registry.get(collector).Options
    except errors.InvalidInput as error:
        raise draft.UnknownCollector(*error.args) from None


def needs_credential(registry: Registry, collector: str, options: Mapping[str, Any]) -> bool:
    """If not, the device's may be of any kind."""
    from poller.collectors import api

    return api.needs_credential(registry.get(collector), registry.options(collector, options))


def check_kind(registry: Registry, collector: str, credential: str, kind: str) -> None:
    """Can this collector use a credential of that kind?"""
    accepted = [model.kind for model in registry.get(collector).credentials]
    if accepted and kind not in accepted:
        raise errors.InvalidInput(
            f'collector {collector} cannot use credential "{credential}" of kind {kind}',
            hint="it takes " + ", ".join(accepted),
        )
