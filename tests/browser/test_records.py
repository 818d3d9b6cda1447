"""The pages of what is on record in a real browser: dead letters that are requeued, new events."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from poller import event_publisher
from poller.db.inventory import inventory_feed
from poller.db.record import dead_letter_rows
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.record.event_kinds import Event, Kind
from tests.browser import test_fleet
from tests.browser.test_fleet import Fleet

fleet = test_fleet.fleet
context = test_fleet.context
page = test_fleet.page


def fill(fleet: Fleet) -> None:
    """Make 30 dead letters of two causes."""
    with inventory_feed.all_specs(fleet.services.engine) as stored:
        ids = sorted(spec.id for spec in stored.specs)
    now_ms = fleet.services.board.now_ms()
    letters = []
    for place, target_id in enumerate(ids[:30]):
        is_refused = place < 20
        letters.append(
            Letter(
                target_id=target_id,
                last_ms=now_ms,
                reason=Reason.AUTH_FAILED if is_refused else Reason.OPEN_TOO_LONG,
                error_code="auth_failed" if is_refused else "timeout",
                message="wrong digest: " + "a text that is long " * 6,
                first_ms=now_ms - 7_200_000,
                parked_ms=now_ms - 3_000_000,
                next_ms=now_ms + 600_000,
                attempts=5,
            )
        )
    dead_letter_rows.write(fleet.services.engine, letters)


def width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_a_group_of_letters_is_requeued(fleet: Fleet, page: Page) -> None:
    """By keys to the page, a group opens, its letters are requeued, and the polls are watched."""
    fill(fleet)
    page.goto(fleet.url)
    page.keyboard.press("g")
    page.keyboard.press("x")
    groups = page.locator('[data-table="letter-groups"] tbody tr')
    expect(groups).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 800})
    assert width(page) <= 390
    groups.first.get_by_role("link").first.click()
    letters = page.locator('[data-table="letters"] tbody tr')
    expect(letters).to_have_count(20)
    letters.first.get_by_text("What to do").click()
    command = letters.first.get_by_text("poller deadletter requeue ap-00.west/ping")
    expect(command).to_be_visible()
    assert width(page) <= 390
    page.get_by_role("button", name="Requeue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Requeue 20 dead letters?")
    assert width(page) <= 390
    page.get_by_role("button", name="Requeue 20").click()
    expect(page.get_by_text("20 dead letters requeued.")).to_be_visible()
    page.get_by_role("link", name="See the results arrive").click()
    expect(page.locator("main")).to_contain_text("20")


def changed(fleet: Fleet, kind: Kind, message: str) -> None:
    """Publish one event, as a worker does."""
    event = Event(fleet.services.board.now_ms(), kind, message, "ap-00.west")
    event_publisher.emit(fleet.services, [event])


def test_new_events_are_announced_and_move_nothing(
    fleet: Fleet, page: Page, context: BrowserContext
) -> None:
    """Two tabs share one stream, whose news makes both read again: at once where nobody reads."""
    changed(fleet, Kind.DEVICE_WENT_DOWN, "the first")
    page.goto(f"{fleet.url}events")
    other = context.new_page()
    other.goto(f"{fleet.url}events?bad=yes")
    page.bring_to_front()
    for each in (page, other):
        expect(each.locator("#live")).to_have_text("● live")
    table = page.locator('[data-table="events"]')
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(1)
    rows.first.hover()
    changed(fleet, Kind.DEVICE_RECOVERED, "the second")
    button = table.get_by_role("button", name="1 new, show")
    expect(button).to_be_visible()
    expect(rows.first).to_contain_text("the first")
    button.click()
    expect(rows.first).to_contain_text("the second")
    expect(button).to_be_hidden()
    changed(fleet, Kind.BREAKER_OPENED, "the third")
    page.mouse.move(5, 5)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("the third")
    assert fleet.streams == 1
    other.bring_to_front()
    expect(other.locator('[data-table="events"] tbody tr')).to_have_count(2)
