"""The sentence of the overview, its numbers and its tables never contradict each other."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet
from hypothesis import given, settings
from hypothesis import strategies as st

from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import Cause, SiteSummary
from poller.domain.fleet.poll_ages import PollAges
from poller.domain.record.overview import Lateness, Load, Overview, State
from poller.presentation import formatting
from poller.presentation.health import Level, Punctuality, Stores
from poller.service.fleet.age_picture import AgePicture
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.api import snapshot
from poller.web.api.snapshot import FleetNumbers, Snapshot

NAMES = ("west", "east", "north", "south")
few = st.integers(0, 40)
maybe = st.booleans()
QUIET = fleet.points(missing=range(70, 90))


@st.composite
def loads(draw: st.DrawFn) -> Load:
    return fleet.load(
        f"poll.{draw(st.sampled_from(('snmp', 'acme', 'ping')))}",
        due=draw(few),
        overdue=draw(few),
        workers=draw(st.integers(0, 2)),
        shortage=draw(st.sampled_from((0.0, 0.0, 0.0, 1.4, None))),
    )


@st.composite
def overviews(draw: st.DrawFn) -> Overview:
    """A fleet after a restart, with paused devices, dark sites, lost workers, in any mixture."""
    states = {state: draw(few) if draw(maybe) else 0 for state in State}
    targets = sum(states.values())
    dark = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    seen_ms = fleet.NOW_MS - draw(st.sampled_from((800, 90_000)))
    overdue = draw(st.integers(0, targets))
    return dataclasses.replace(
        fleet.HEALTHY,
        targets=targets,
        states=states,
        overdue=overdue,
        long_overdue=draw(st.integers(0, min(2, overdue))) if draw(maybe) else 0,
        unstarted=draw(st.sampled_from((0, 0, 3))),
        held=draw(st.integers(0, targets)) if dark else 0,
        dark=dict.fromkeys(dark, fleet.NOW_MS - 60_000),
        opened_by_hand=draw(st.integers(0, targets)) if draw(maybe) else 0,
        dead_letters={"auth_failed": draw(st.integers(0, targets))} if draw(maybe) else {},
        lateness=Lateness(9, 5.0, draw(st.sampled_from((80.0, 9_000.0))), 9_000.0)
        if draw(maybe)
        else Lateness(),
        loads=draw(st.lists(loads(), max_size=3, unique_by=lambda load: load.queue)),
        leader=fleet.HEALTHY.leader if draw(st.integers(0, 5)) else None,
        workers=[fleet.worker(1, seen_ms=seen_ms)] if draw(st.integers(0, 5)) else [],
        recent=QUIET if draw(st.integers(0, 5)) == 0 else fleet.points(),
        totals=fleet.HEALTHY.totals if draw(maybe) else {},
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A snapshot whose picture of the failing targets may be older than its overview."""
    sites = [
        SiteSummary(name, 50, draw(few), draw(st.sampled_from((0, 0, 5))), draw(few))
        for name in NAMES
    ]
    picture = FleetPicture(
        causes=[Cause("timeout", site.name, site.failing, site.failing) for site in sites],
        sites=failing_causes.worst_first(sites),
        failing_devices=sum(site.failing for site in sites),
        devices=200,
        is_complete=draw(maybe),
        as_of_ms=fleet.NOW_MS,
    )
    ages = AgePicture(
        PollAges(tuple(draw(few) for _ in range(5)), draw(few), late=draw(few)),
        whole=draw(maybe),
        as_of_ms=fleet.NOW_MS,
    )
    errors = st.sampled_from(("", "", "", "it does not answer"))
    stores = Stores(
        redis_error=draw(errors),
        write_error=draw(errors),
        sql_error=draw(errors),
        sql_targets=draw(few),
    )
    numbers = FleetNumbers(picture if draw(maybe) else FleetPicture(), ages)
    return snapshot.taken(draw(overviews()), stores, numbers)


with_numbers = snapshots().filter(lambda found: found.view.layout == "overview")
current = with_numbers.filter(lambda found: not found.stores.redis_error)


@settings(max_examples=250, deadline=None)
@given(current)
def test_lateness_is_said_by_the_sentence_and_the_numbers_alike(found: Snapshot) -> None:
    """Each is on time, late, or neither because nothing is polled."""
    view = found.view
    text, punctuality = view.texts["health"], view.health.punctuality
    assert ("Polling is on time." in text) == (punctuality is Punctuality.ON_TIME)
    assert ("Polling is late" in text) == (punctuality is Punctuality.LATE)
    assert (view.tones.get("late") == "late") == (punctuality is Punctuality.LATE)
    is_stopped = punctuality is Punctuality.STOPPED
    assert (view.texts["late"] == "–") == is_stopped
    assert (view.texts["up-note"] == "nothing is polled now") == is_stopped
    ages = found.numbers.ages.ages
    assert (view.texts["ages-why"] == "No poll is missing.") == (
        not is_stopped and not ages.old and not ages.never and ages.looked_at > 0
    )
    if is_stopped:
        assert view.health.level is Level.DOWN
        assert "late" not in view.texts["ages-why"].split(": ")[-1]
        coloured = {"late", "up-to-date", "capacity", "p99", "age-3", "age-4"}
        assert not coloured & set(view.tones)


@settings(max_examples=250, deadline=None)
@given(current)
def test_failures_are_said_by_the_sentence_and_the_numbers_alike(found: Snapshot) -> None:
    """The tile, the states, the title and the causes have the number of the sentence."""
    view, overview = found.view, found.overview
    assert overview is not None
    text, failing = view.texts["health"], overview.states[State.FAILING]
    targets = formatting.counted(overview.targets, "target")
    assert view.texts["failing"] == view.texts["state-failing"] == str(failing)
    assert (f"{failing} of {targets} failing." in text) == bool(failing)
    letters = sum(overview.dead_letters.values())
    if overview.targets:
        assert ("dead letters" in text) == (view.texts["letters"] != "0") == bool(letters)
    if view.health.level is not Level.DOWN:
        assert view.texts["title"] == (f"({failing}) poller" if failing else "poller")
    if not failing:
        assert view.rows["why"] == ()
        assert not [row for row in view.rows["sites"] if row not in overview.dark]
    if "answer." in text and "All" in text:
        assert failing == overview.states[State.UNKNOWN] == overview.held == 0
    if view.texts["up-to-date"] == "100 %":
        assert failing == overview.states[State.UNKNOWN] == overview.overdue == overview.held == 0


@settings(max_examples=250, deadline=None)
@given(with_numbers)
def test_sites_are_dark_in_the_sentence_and_the_table_alike(found: Snapshot) -> None:
    """The picture of the sites may be older; the newest overview decides."""
    view, overview = found.view, found.overview
    assert overview is not None
    is_dark = [row for row in view.rows["sites"] if "dark" in view.texts[f"sites/{row}/state"]]
    assert set(is_dark) == set(overview.dark)
    assert {site.name for site in found.fleet.sites if site.state == "dark"} == set(overview.dark)
    if not found.stores.redis_error:
        assert ("dark:" in view.texts["health"]) == bool(is_dark)
        assert all(site in view.texts["health"] for site in is_dark)


@settings(max_examples=250, deadline=None)
@given(current)
def test_a_shortage_is_said_by_the_sentence_and_the_capacity_alike(found: Snapshot) -> None:
    """The coloured number has a sentence that explains it, and rows that show it."""
    view = found.view
    text = view.texts["health"]
    words = ("times the workers", "no running worker has", "Nothing is polled with", "as well.")
    is_told = any(word in text for word in words)
    if view.health.punctuality is not Punctuality.STOPPED:
        assert ("capacity" in view.tones) == is_told
        rows = [row for row in view.rows["capacity"] if f"capacity/{row}/state" in view.tones]
        assert bool(rows) == is_told


@settings(max_examples=100, deadline=None)
@given(with_numbers.filter(lambda found: bool(found.stores.redis_error)))
def test_numbers_of_a_board_that_cannot_be_read_are_said_to_be_old(found: Snapshot) -> None:
    """They are neither late nor on time now, and the sentence has their instant."""
    view = found.view
    assert "The numbers below are from 00:13:12 UTC." in view.texts["health"]
    assert view.health.punctuality is Punctuality.UNKNOWN
    assert "late" not in view.tones
