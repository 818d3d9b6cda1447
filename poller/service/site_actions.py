"""Actions on sites: list, show, edit, remove. The first device of a site makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import sites
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.sites import Site
from poller.domain.access.actor import Actor
from poller.domain.inventory import naming

if TYPE_CHECKING:
    from poller.bootstrap import Services


def listing(services: Services, actor: Actor) -> list[Site]:
    """Return the sites that the actor may see, by name."""
    found = sites.listing(services.engine)
    return [site for site in found if actor.site in (None, site.name)]


def show(services: Services, actor: Actor, name: str) -> Site:
    """Return one site. Raises NotFound, also for a site that the actor may not see."""
    if actor.site not in (None, name):
        raise errors.NotFound(f'no site named "{name}"', hint="poller site list")
    return sites.show(services.engine, name)


def edit(
    services: Services,
    author: Author,
    name: str,
    requires: Iterable[str] | Mapping[str, str],
    expected: str | None = None,
) -> Site:
    """Set the tags that workers must have to poll the devices of a site.

    Raises InvalidInput, NotFound, EditConflict if the site is not the expected version.
    """
    checked = naming.parse_requirements(requires)
    return sites.edit(services.engine, name, checked, author, expected)


def remove(services: Services, author: Author, name: str, expected: str | None = None) -> None:
    """Remove a site without devices. Raises InvalidInput, NotFound, EditConflict."""
    sites.remove(services.engine, name, author, expected)
