"""Many events of one kind are one line."""

from __future__ import annotations

from poller.domain.record import event_groups
from poller.domain.record.event_groups import PAUSE_MS
from poller.domain.record.event_kinds import Event, Kind

NOW_MS = 1_794_874_392_000


def event(ago_s: int, kind: Kind = Kind.DEVICE_WENT_DOWN, device: str = "") -> Event:
    return Event(NOW_MS - ago_s * 1000, kind, "down", device or f"ap-{ago_s}")


def test_a_dark_site_is_one_line_and_its_devices_another() -> None:
    """The devices that went down together are one group, the site's own event stays itself."""
    events = [event(1), event(2), event(3, Kind.SITE_OPENED, "gw"), event(4), event(5)]
    found = event_groups.group(events)
    assert [(each.newest.kind, each.number) for each in found] == [
        (Kind.DEVICE_WENT_DOWN, 4),
        (Kind.SITE_OPENED, 1),
    ]
    assert found[0].names == ["ap-1", "ap-2", "ap-4", "ap-5"]
    assert found[0].oldest_ms == NOW_MS - 5_000


def test_few_events_stay_lines_of_their_own() -> None:
    """Two devices are two lines, in the order of time."""
    events = [event(1), event(2, Kind.DEVICE_RECOVERED), event(3)]
    found = event_groups.group(events)
    assert [each.newest for each in found] == events


def test_a_long_pause_begins_a_new_group() -> None:
    """Yesterday's failures are not those of today."""
    later = [event(each) for each in (1, 2, 3)]
    pause_s = PAUSE_MS // 1000
    earlier = [event(each + pause_s + 3) for each in (1, 2, 3)]
    assert [each.number for each in event_groups.group([*later, *earlier])] == [3, 3]


def test_a_page_takes_as_many_events_as_fit_its_lines() -> None:
    """A thousand failures are one line; events that do not group are a line each."""
    many = [event(each) for each in range(1_000)]
    assert event_groups.fitting(many, 10) == 1_000
    kinds = list(Kind)[:20]
    mixed = [event(each, kinds[each % 20]) for each in range(40)]
    number = event_groups.fitting(mixed, 10)
    assert number == 10
    assert len(event_groups.group(mixed[:number])) == 10
    assert event_groups.fitting([], 10) == 0


def test_jobs_are_named_where_no_device_is() -> None:
    """The name comes from the data of the event."""
    jobs = [
        Event(NOW_MS, Kind.JOB_FAILED, "job failed", data={"job": name})
        for name in ("prune", "prune", "tidy")
    ]
    [found] = event_groups.group(jobs)
    assert found.names == ["prune", "tidy"]
