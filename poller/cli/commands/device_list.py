"""`poller device list`: the devices that match a filter, in the order that was chosen."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json, Limit
from poller.domain.fleet.device_sort import DeviceSort, Section, SortKey
from poller.domain.inventory import target_filter
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.inventory.devices import Device
    from poller.domain.inventory.target_filter import TargetFilter

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("ADDRESS", "address", fit=Fit.WHOLE),
    column("SITE", "site"),
    column("TAGS", "tags"),
    column("PARENT", "parent", spare=2),
    column("CREDENTIAL", "credential"),
    column("TARGETS", "targets", right=True),
    column("ENABLED", "enabled"),
)


@expand_options
def list_(
    selection: FilterOptions,
    sort: Annotated[
        DeviceSort,
        typer.Option(
            help="The order; worst and last_ok go on by name behind the devices that are not ok."
        ),
    ] = DeviceSort.NAME,
    limit: Limit = 50,
    after: Annotated[str, typer.Option(help="Start after this name; by name only.")] = "",
    as_json: Json = False,
) -> None:
    """List devices, by name unless another order is chosen."""
    services = bootstrap.services()
    inventory_database.database(services)
    wanted = target_filter.ANY if selection.is_empty else selection.parse()
    if sort is not DeviceSort.NAME and after:
        raise errors.InvalidInput("--after: only the order by name has it", hint="--limit 500")
    found, last = _listed(services, wanted, sort, limit, after)
    items = [asdict(device) for device in found]
    following = last.text if last and sort is DeviceSort.NAME else None
    render.listing("poller.device.list/1", items, _COLUMNS, as_json, next=following)

    if as_json:
        return
    if last:
        total = _total(services, selection)
        more = f"--after {following} or --limit {total}" if following else f"--limit {total}"
        render.note(f"{total:,} devices in all; more with {more}")
    elif not items:
        render.note(_nothing(not selection.is_empty, after))


def _listed(
    services: Services, wanted: TargetFilter, sort: DeviceSort, limit: int, after: str
) -> tuple[list[Device], SortKey | None]:
    """The next devices, and the key to go on after; None at the end."""
    from poller.service.fleet import sorted_devices

    actor = command_actor.of_command()
    found: list[Device] = []
    last = SortKey(Section.REST, 0, after) if after else None
    while len(found) < limit:
        page = sorted_devices.page(services, actor, wanted, sort, limit - len(found), last)
        found += page.devices
        last = page.last
        render.warning(page.note)
        if last is None:
            break
    return found, last


def _total(services: Services, selection: FilterOptions) -> int:
    """The number of devices that match, on all pages."""
    from poller.db.inventory import devices
    from poller.service import target_selection

    if selection.is_empty:
        return devices.count(services.engine)
    return len(target_selection.select_devices(services, selection.parse()))


def _nothing(is_filtered: bool, after: str) -> str:
    if after:
        return f"no more devices after {after}"
    if is_filtered:
        return "no device matches; `poller device list` without filters shows all"
    return "no devices yet: poller device add NAME ADDRESS, or poller device import FILE"
