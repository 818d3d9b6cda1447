"""The list of devices as texts: rows, links, and what an empty list says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.fleet import device_summary
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.overview import State
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.fleet.device_listing import DeviceList, ListedDevice
from poller.web.api.contract import paging
from poller.web.pages.fleet import devices_query, saved_links
from poller.web.pages.fleet.devices_query import SORTS, DevicesQuery

TONES = {
    State.OK.value: Tone.OK,
    State.DEGRADED.value: Tone.LATE,
    State.FAILING.value: Tone.FAILING,
    State.UNKNOWN.value: Tone.UNKNOWN,
    "late": Tone.LATE,
}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """The texts of one device by column."""

    name: str
    address: str
    state: str
    tone: str
    note: str  # how many of its targets fail, and since when
    last_ok: str
    last_ok_at: str  # the instant, for a tooltip and a program
    every: str
    collectors: str
    site: str
    tags: str
    error: str


@dataclass(frozen=True, slots=True)
class SortLink:
    """An order of the list, and its address."""

    title: str
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class DevicesView:
    as_of: str
    query: DevicesQuery
    where: str  # the filter in its canonical form
    rows: Sequence[DeviceRow]
    following: str  # address of the next page; "" at the end
    first: str  # address of the first page; "" on it
    command: str
    board_error: str
    note: str  # why the order is another one; "" for none
    sorts: Sequence[SortLink]
    empty: str
    save_command: str
    without: Sequence[tuple[str, str]]  # shorter filters for an empty list, and their addresses


def build_view(found: DeviceList, query: DevicesQuery, wanted: TargetFilter) -> DevicesView:
    """Build the view of one page."""
    following = paging.encode(found.last)
    return DevicesView(
        as_of=formatting.instant(found.now_ms),
        query=query,
        where=target_filter.text(wanted),
        rows=[row(each, found.now_ms) for each in found.devices],
        following=query.url(after=following) if following else "",
        first=query.url() if query.after else "",
        command=devices_query.list_command(wanted, query.sort),
        board_error=found.board_error,
        save_command=saved_links.command(target_filter.text(wanted), query.sort),
        note=found.note,
        sorts=[
            SortLink(title, query.url(sort=each), each is query.sort)
            for each, title in SORTS.items()
        ],
        empty=_empty(found, wanted),
        without=_shorter(query, wanted) if not found.devices else (),
    )


def row(listed: ListedDevice, now_ms: int) -> DeviceRow:
    """Return the texts of a device."""
    device, summary = listed.device, listed.summary
    status = summary.worst.status if summary.worst else None
    is_failing = status is not None and status.state is State.FAILING
    word = status.code if status and is_failing and status.code else summary.state
    if summary.overdue and not is_failing:
        word = "late"
    if word == device_summary.DISABLED:
        word = f"‖ {word}"
    error = f"{status.code}: {status.message}" if status and status.code else ""
    return DeviceRow(
        name=device.name,
        address=device.address,
        state=word,
        tone=str(Tone.FAILING if is_failing else TONES.get(word, "")),
        note=_note(listed, now_ms) if is_failing else "",
        last_ok=formatting.age(now_ms - summary.ok_ms) if summary.ok_ms else "never",
        last_ok_at=formatting.instant(summary.ok_ms) if summary.ok_ms else "",
        every=_intervals(listed.intervals_ms),
        collectors=", ".join(listed.collectors) or formatting.NOT_MEASURED,
        site=device.site,
        tags=" ".join(device.tags),
        error=error,
    )


def _note(listed: ListedDevice, now_ms: int) -> str:
    """`3 of 4 targets, 21 m`"""
    summary = listed.summary
    since_ms = summary.worst.status.since_ms if summary.worst else 0
    lasting = formatting.age(now_ms - since_ms) if since_ms else ""
    some = f"{summary.failing} of {summary.polled} targets" if summary.polled > 1 else ""
    return ", ".join(part for part in (some, lasting) if part)


def _intervals(intervals_ms: Sequence[int]) -> str:
    if not intervals_ms:
        return formatting.NOT_MEASURED
    ends = [formatting.duration(each) for each in (intervals_ms[0], intervals_ms[-1])]
    return "–".join(dict.fromkeys(ends))


def _empty(found: DeviceList, wanted: TargetFilter) -> str:
    if found.devices:
        return ""
    if found.last is not None:
        return "None among the devices that were looked at; there are more on the next page."
    return "No device yet." if wanted.is_empty else "No device matches."


def _shorter(query: DevicesQuery, wanted: TargetFilter) -> list[tuple[str, str]]:
    """The filter without each of its keys: what to remove from a search that finds nothing."""
    keys = [key for key, name in target_filter.FIELDS.items() if getattr(wanted, name)]
    if len(keys) < 2:
        return []
    shorter = []
    for removed in keys:
        rest = {key: getattr(wanted, target_filter.FIELDS[key]) for key in keys if key != removed}
        shorter.append((removed, query.of_filter(target_filter.checked(rest))))
    return shorter
