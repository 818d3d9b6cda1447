"""`/api/v1/sites`: where devices are, and which workers may poll them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.db.inventory.sites import Site
from poller.service import site_actions
from poller.web.api.contract import etags, paging, problems, resources
from poller.web.api.contract.etags import IfMatch
from poller.web.api.contract.needs import EditingAll, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("sites")

SiteName = Annotated[str, Path(max_length=200, description="The name of the site.")]


class SiteBody(BaseModel):
    """A site as it is read."""

    name: str
    requires: dict[str, str] = Field(description="Tags that a worker must have to poll here.")
    devices: int = Field(description="How many devices are here.")


class SiteEdit(BaseModel):
    """The new fields of a site."""

    model_config = ConfigDict(extra="forbid")

    requires: dict[str, str] = Field(max_length=50)


@router.get("")
def list_sites(
    call: Reading,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[SiteBody]:
    """List the sites by name."""
    key = paging.decode(cursor, str)
    found = site_actions.listing(call.services, call.actor)
    rest = [site for site in found if key is None or site.name > key[0]]
    last = [rest[limit - 1].name] if len(rest) > limit else None
    following = paging.encode(last)
    paging.link_next(request, response, following)
    return Page(items=[_body(site) for site in rest[:limit]], next=following)


@router.get("/{name}")
def show_site(call: Reading, response: Response, name: SiteName) -> SiteBody:
    """Show one site."""
    site = site_actions.show(call.services, call.actor, name)
    etags.set_tag(response, site.tag)
    return _body(site)


@router.patch("/{name}", responses=problems.CHANGING)
def edit_site(
    call: EditingAll, response: Response, name: SiteName, edit: SiteEdit, if_match: IfMatch = None
) -> SiteBody:
    """Set the tags that workers must have to poll the devices of a site."""
    expected = etags.expected(if_match)
    site = site_actions.edit(call.services, call.author, name, edit.requires, expected)
    etags.set_tag(response, site.tag)
    return _body(site)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_site(call: EditingAll, name: SiteName, if_match: IfMatch = None) -> None:
    """Remove a site without devices."""
    site_actions.remove(call.services, call.author, name, etags.expected(if_match))


def _body(site: Site) -> SiteBody:
    return SiteBody(name=site.name, requires=dict(site.requires), devices=site.devices)
