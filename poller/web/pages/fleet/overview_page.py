"""The overview as texts by cell. The template and the live stream use the same texts, so a patched
cell reads exactly like a loaded one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import LATENESS_EDGES_MS, Overview, State
from poller.presentation import formatting, health
from poller.presentation.health import Health, Punctuality, Stores, Tone
from poller.service.fleet.age_picture import AgePicture
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.pages.fleet import age_bands, charts, overview_numbers, overview_tables
from poller.web.pages.fleet.live_table import Shown, Table

NO_STORE_ERROR = Stores()
NO_FAILURES = FleetPicture()
NO_AGES = AgePicture()
NO_TIMES: Mapping[str, QueueTimes] = {}
#: An older picture of the failing targets says when it was taken.
OLD_PICTURE_MS = 30_000
#: The states of targets and their tones, worst first.
STATES = {
    State.FAILING: Tone.FAILING,
    State.DEGRADED: Tone.LATE,
    State.UNKNOWN: Tone.UNKNOWN,
    State.OK: Tone.OK,
}


@dataclass(frozen=True, slots=True)
class OverviewView:
    """A page by cell, table and plot id. `layout` is overview, first-run or unreadable."""

    layout: str
    health: Health
    texts: Mapping[str, str] = field(default_factory=dict)
    tones: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)  # keys of the rows by table
    plots: Mapping[str, str] = field(default_factory=dict)


def build_view(
    overview: Overview | None,
    stores: Stores = NO_STORE_ERROR,
    fleet: FleetPicture = NO_FAILURES,
    ages: AgePicture = NO_AGES,
    times: Mapping[str, QueueTimes] = NO_TIMES,
) -> OverviewView:
    """Build the view of the newest overview. `stores.redis_error` says why there is no newer."""
    if overview is None:
        return _view_without_numbers("unreadable", health.judge(None, stores))
    if stores.redis_error:
        last_read = formatting.instant(overview.as_of_ms)[11:19]
        verdict = health.judge(None, stores, last_read)
    else:
        verdict = health.judge(overview, stores)
        if health.is_first_run(overview, stores):
            return _view_without_numbers("first-run", verdict, overview)
    shown = Shown(overview, fleet, times, verdict.punctuality)
    return _view_with_numbers(shown, ages, verdict, stores)


def _view_without_numbers(
    layout: str, verdict: Health, overview: Overview | None = None
) -> OverviewView:
    texts = _verdict_texts(verdict)
    if overview:
        texts["as-of"] = formatting.instant(overview.as_of_ms)
    return OverviewView(layout, verdict, texts, _verdict_tones(verdict))


def _view_with_numbers(
    shown: Shown, ages: AgePicture, verdict: Health, stores: Stores
) -> OverviewView:
    overview, punctuality = shown.overview, shown.punctuality
    texts = {
        **_verdict_texts(verdict),
        "as-of": formatting.instant(overview.as_of_ms),
        **overview_numbers.texts(shown, stores.alerts),
        **age_bands.texts(ages, overview.targets, punctuality),
        **_start_texts(overview),
        **_board_texts(overview),
        **_leader_texts(overview),
        "affected": _affected(shown),
        "causes": _error_causes(overview),
    }
    tones = {
        **_verdict_tones(verdict),
        **overview_numbers.tones(overview, punctuality, stores.alerts),
        **age_bands.tones(ages, punctuality),
        **_detail_tones(overview, punctuality),
    }

    plots = {"ages": age_bands.picture(ages, punctuality)}
    for chart in charts.draw(overview):
        plots[chart.id] = chart.svg
        for place, text in chart.axis.items():
            texts[f"{chart.id}-{place}"] = text

    rows = {}
    for table in overview_tables.ALL:
        rows[table.id] = _fill(table, shown, texts, tones)

    return OverviewView(
        layout="overview",
        health=verdict,
        texts=texts,
        tones=tones,
        rows=rows,
        plots=plots,
    )


def _verdict_texts(verdict: Health) -> dict[str, str]:
    return {
        "health": verdict.text,
        "glyph": verdict.glyph,
        "title": verdict.title,
    }


def _verdict_tones(verdict: Health) -> dict[str, str]:
    """The glyph has the tone of the verdict; the sentence only in an alarm."""
    tones = {"glyph": str(verdict.tone)}
    if verdict.alarm:
        tones["health"] = str(verdict.tone)
    return tones


def _affected(shown: Shown) -> str:
    """How many devices and sites have a failing target, and of when that is if it is old."""
    overview, fleet = shown.overview, shown.fleet
    if not fleet.failing_devices:
        return ""
    sites = [site for site in fleet.sites if site.state in ("dark", "failing")]
    of_devices = formatting.counted(fleet.devices, "device")
    failing = f"{formatting.exact(fleet.failing_devices)} of {of_devices}"
    text = f"{failing}, {formatting.counted(len(sites), 'site')} affected"
    if fleet.as_of_ms and overview.as_of_ms - fleet.as_of_ms > OLD_PICTURE_MS:
        text += f", as of {formatting.instant(fleet.as_of_ms)[11:19]} UTC"
    return text


def _start_texts(overview: Overview) -> dict[str, str]:
    """How long after their slots polls start, of those of the last five minutes."""
    lateness = overview.lateness
    bands = lateness.bands or (0,) * (len(LATENESS_EDGES_MS) + 1)
    texts = {}
    for number, polls in enumerate(bands):
        texts[f"band-{number}"] = formatting.share(polls, sum(bands))
    percentiles = {"p50": lateness.p50_ms, "p99": lateness.p99_ms, "max": lateness.max_ms}
    for name, value_ms in percentiles.items():
        is_measured = lateness.count > 0
        texts[name] = formatting.duration(value_ms) if is_measured else formatting.NOT_MEASURED
    return texts


def _detail_tones(overview: Overview, punctuality: Punctuality) -> dict[str, str]:
    """The tones of bad numbers below the first ones; a good number has no colour."""
    tones = {}
    for state, tone in STATES.items():
        if overview.states.get(state, 0):
            tones[f"mark-{state}"] = str(tone)

    is_late = punctuality is Punctuality.LATE
    if is_late and overview.lateness.p99_ms > health.LATE_P99_MS:
        tones["p99"] = str(Tone.LATE)
    if overview.leader is None:
        tones["leader"] = str(Tone.FAILING)
    return tones


def _board_texts(overview: Overview) -> dict[str, str]:
    breakers = overview.breakers_open + overview.opened_by_hand
    missed = overview.totals.get("missed_slots")
    texts = {
        "place-due": formatting.exact(overview.due),
        "place-flight": formatting.exact(overview.in_flight),
        "place-parked": formatting.exact(overview.parked),
        "place-held": formatting.exact(overview.held),
        "breakers": formatting.exact(breakers),
        "missed": formatting.NOT_MEASURED if missed is None else formatting.count(missed),
        "outcomes": _outcomes(overview),
        "throughput": formatting.rate(overview.polls_per_second),
    }

    for state in STATES:
        number = overview.states.get(state, 0)
        texts[f"state-{state}"] = formatting.exact(number)
        texts[f"share-{state}"] = formatting.share(number, overview.targets)
    return texts


def _outcomes(overview: Overview) -> str:
    """The outcomes of the last five minutes: `ok 98.2 k · failed 12`."""
    outcomes = overview.outcomes
    most_frequent_first = sorted(outcomes, key=lambda name: (-outcomes[name], name))
    counts = []
    for name in most_frequent_first:
        counts.append(f"{name} {formatting.count(outcomes[name])}")
    return " · ".join(counts) or formatting.NOT_MEASURED


def _leader_texts(overview: Overview) -> dict[str, str]:
    texts = {
        "leader": "none",
        "leader-for": formatting.NOT_MEASURED,
        "epoch": formatting.NOT_MEASURED,
        "standbys": formatting.exact(overview.standbys),
    }

    leader = overview.leader
    if leader:
        texts["leader"] = leader.name
        texts["leader-for"] = formatting.age(overview.as_of_ms - leader.since_ms)
        texts["epoch"] = formatting.exact(leader.epoch)
    return texts


def _error_causes(overview: Overview) -> str:
    """The codes of the last errors: `By cause, of the last 20: timeout 15 · unreachable 5`."""
    codes = Counter(error.code for error in overview.errors)
    if not codes:
        return ""

    counts = [f"{code} {number}" for code, number in codes.most_common()]
    total = len(overview.errors)
    return f"By cause, of the last {total}: {' · '.join(counts)}"


def _fill(
    table: Table, shown_values: Shown, texts: dict[str, str], tones: dict[str, str]
) -> tuple[str, ...]:
    """Add the cells of a table to `texts` and `tones`; return the keys of its rows."""
    rows = {row.key: row for row in table.rows(shown_values)}
    shown = list(rows.values())[: table.limit]

    for row in shown:
        prefix = f"{table.id}/{row.key}"
        for column, text in row.texts.items():
            texts[f"{prefix}/{column}"] = text
        for column, tone in row.tones.items():
            tones[f"{prefix}/{column}"] = str(tone)

    total = table.total(shown_values) if table.total else len(rows)
    hidden = total - len(shown)
    more = ""
    if hidden > 0:
        more = f"{formatting.exact(hidden)} more, not shown"
    texts[f"{table.id}-more"] = more
    texts[f"{table.id}-empty"] = table.empty(shown_values)
    return tuple(row.key for row in shown)
