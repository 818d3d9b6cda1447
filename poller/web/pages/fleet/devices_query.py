"""The address of the list of devices: filter, page, size and columns. It is the whole state of the
view, so that it can be shared.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller.domain.fleet import search_words
from poller.domain.fleet.device_sort import DeviceSort, SortKey
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.fleet.device_listing import PAGE_SIZES
from poller.web.access.form_values import FormValues
from poller.web.api.contract import paging
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be chosen. `kind` is its class in the style sheet."""

    id: str
    title: str
    kind: str = "text"


COLUMNS = (
    Column("state", "State"),
    Column("strip", "Last 24 h", "strip"),
    Column("last_ok", "Last ok", "number"),
    Column("every", "Every", "number"),
    Column("collectors", "Collectors"),
    Column("site", "Site"),
    Column("tags", "Tags"),
    Column("error", "Last error", "message"),
)
#: The orders that can be chosen, with their titles.
SORTS = {
    DeviceSort.NAME: "by name",
    DeviceSort.SITE: "by site",
    DeviceSort.WORST: "worst first",
    DeviceSort.LAST_OK: "oldest data first",
}
_DEFAULT = ("state", "strip", "last_ok", "every", "collectors", "error")


@dataclass(frozen=True, slots=True)
class DevicesQuery:
    """The parameters of the address. The texts are as they were typed."""

    where: str = ""
    after: str = ""  # the cursor
    limit: int = PAGE_SIZES[0]
    columns: Sequence[str] = _DEFAULT
    sort: DeviceSort = DeviceSort.NAME

    @property
    def wanted(self) -> TargetFilter:
        """The filter. Raises InvalidInput."""
        return search_words.as_filter(self.where)

    @property
    def after_key(self) -> SortKey | None:
        """The key after which the page begins. Raises InvalidInput for a wrong cursor."""
        key = paging.decode(self.after, int, int, str, str)
        return SortKey(*key) if key else None

    @property
    def shown(self) -> list[Column]:
        return [column for column in COLUMNS if column.id in self.columns]

    def url(self, path: str = "", **changes: object) -> str:
        """The address with some parameters changed; those at their default are left out.

        Every change but that of the page goes back to the first page.
        """
        if "after" not in changes:
            changes["after"] = ""
        query = replace(self, **changes)  # type: ignore[arg-type]
        given: dict[str, object] = {"where": query.where, "after": query.after}
        if query.sort is not DeviceSort.NAME:
            given["sort"] = query.sort.value
        if query.limit != PAGE_SIZES[0]:
            given["limit"] = query.limit
        if tuple(query.columns) != _DEFAULT:
            given["columns"] = ",".join(query.columns)
        return f"{path}?{urlencode({key: value for key, value in given.items() if value})}"

    def of_filter(self, wanted: TargetFilter, path: str = "") -> str:
        """The address with another filter."""
        return self.url(path, where=target_filter.text(wanted))


def list_command(wanted: TargetFilter, sort: DeviceSort) -> str:
    """The command that lists the same: `poller device list --where state:failing --sort worst`."""
    flag = "" if sort is DeviceSort.NAME else f" --sort {sort}"
    return command("device list", wanted, flag)


def command(words: str, wanted: TargetFilter, flag: str = "") -> str:
    """The command for the devices of a filter: `poller device list --where state:failing`."""
    text = target_filter.text(wanted)
    where = f" --where {shlex.quote(text)}" if text else ""
    return f"poller {words}{where}{flag}"


def _query(
    where: Annotated[str, Query(max_length=LONGEST_WHERE)] = "",
    after: Annotated[str, Query(max_length=2_000)] = "",
    limit: int = PAGE_SIZES[0],
    columns: Annotated[str, Query(max_length=200)] = "",
    column: Annotated[list[str] | None, Query()] = None,
    sort: Annotated[str, Query(max_length=20)] = "",
) -> DevicesQuery:
    """Read the parameters. An unknown size, column or order is left out of account."""
    known = {each.id for each in COLUMNS}
    wanted = column if column else columns.split(",")
    chosen = tuple(each.id for each in COLUMNS if each.id in wanted and each.id in known)
    size = limit if limit in PAGE_SIZES else PAGE_SIZES[0]
    order = DeviceSort(sort) if sort in list(DeviceSort) else DeviceSort.NAME
    return DevicesQuery(where.strip(), after, size, chosen or _DEFAULT, order)


def of_form(form: FormValues) -> DevicesQuery:
    """Read the view that a form of the list belongs to."""
    sort = form.one("sort")
    return _query(form.one("where")[:LONGEST_WHERE], sort=sort, columns=form.one("columns"))


#: A parameter of a route: FastAPI makes it from the address.
RequestedDevices = Annotated[DevicesQuery, Depends(_query)]
