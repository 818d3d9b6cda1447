"""A saved filter: a view of the list of devices under a name."""

from __future__ import annotations

from dataclasses import dataclass

from poller import errors
from poller.domain.fleet.device_sort import DeviceSort
from poller.domain.inventory import naming, target_filter

LONGEST_NAME = 60
LONGEST_WHERE = 2_000
#: Filters that one owner may have: more cannot be found at a glance.
MOST = 50


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """A filter and an order. Only its owner sees one that is not shared."""

    name: str
    owner: str
    where: str = ""
    sort: DeviceSort = DeviceSort.NAME
    is_shared: bool = False


def checked(draft: SavedFilter) -> SavedFilter:
    """Return a filter with its text in the canonical form. Raises InvalidInput, with the field."""
    with errors.of_field("name"):
        naming.checked_name(draft.name)
        if len(draft.name) > LONGEST_NAME:
            raise errors.InvalidInput(f"the name has more than {LONGEST_NAME} characters")
    with errors.of_field("where"):
        where = target_filter.text(target_filter.parse(draft.where))
        if len(where) > LONGEST_WHERE:
            raise errors.InvalidInput(f"the filter has more than {LONGEST_WHERE} characters")
    if not where and draft.sort is DeviceSort.NAME:
        raise errors.InvalidInput(
            "where: this is the whole list", hint="save a filter or an order", field="where"
        )
    return SavedFilter(draft.name, draft.owner, where, draft.sort, draft.is_shared)
