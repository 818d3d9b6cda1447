"""An overview as the texts of a page. The template and the stream both take them from here, so a cell
that is patched reads exactly like one that was loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poller.domain.record.overview import Overview, State
from poller.presentation import formatting, health
from poller.presentation.health import Health, Tone
from poller.web.pages import charts, overview_tables

#: The words and tones of a target's states, worst first.
STATES = {
    State.FAILING: Tone.FAILING,
    State.DEGRADED: Tone.LATE,
    State.UNKNOWN: Tone.UNKNOWN,
    State.OK: Tone.OK,
}


@dataclass(frozen=True, slots=True)
class View:
    """`layout` names the page to show; all else is addressed by cell, table and plot id."""

    layout: str  # overview, first-run or unreadable
    health: Health
    texts: Mapping[str, str] = field(default_factory=dict)
    tones: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    plots: Mapping[str, str] = field(default_factory=dict)


def present(overview: Overview | None, trouble: str = "") -> View:
    """The newest overview there is, and why there is no newer one (if so)."""
    if overview is None:
        return _bare("unreadable", health.unreadable(trouble))
    if trouble:
        last_read = formatting.instant(overview.as_of_ms)[11:19]
        return _full(overview, health.unreadable(trouble, last_read))
    verdict = health.judge(overview)
    return (
        _bare("first-run", verdict, overview)
        if health.is_first_run(overview)
        else _full(overview, verdict)
    )


def changes(old: View | None, new: View) -> dict[str, Any]:
    """What a page that shows `old` must change to show `new`; None stands for a cell that is no more."""
    parts = {
        part: _changed(getattr(old, part) if old else {}, getattr(new, part))
        for part in ("texts", "tones", "rows", "plots")
    }
    return {part: changed for part, changed in parts.items() if changed}


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in new.items() if key not in old or old[key] != value}
    return changed | {key: None for key in old if key not in new}


def _bare(layout: str, verdict: Health, overview: Overview | None = None) -> View:
    """A page without numbers; the time still moves, so that its reader knows it is alive."""
    texts = _verdict(verdict) | (
        {"as-of": formatting.instant(overview.as_of_ms)} if overview else {}
    )
    return View(layout, verdict, texts, _verdict_tones(verdict))


def _full(overview: Overview, verdict: Health) -> View:
    drawn = charts.draw(overview)
    texts = (
        _verdict(verdict)
        | _numbers(overview)
        | _board(overview)
        | _leader(overview)
        | _causes(overview)
    )
    texts |= {f"{chart.id}-{place}": text for chart in drawn for place, text in chart.axis.items()}
    tones = _verdict_tones(verdict) | _number_tones(overview)
    rows: dict[str, Sequence[str]] = {}
    for table in overview_tables.ALL:
        rows[table.id] = _fill(table, overview, texts, tones)
    return View("overview", verdict, texts, tones, rows, {chart.id: chart.svg for chart in drawn})


def _verdict(verdict: Health) -> dict[str, str]:
    return {"health": verdict.text, "glyph": verdict.glyph, "title": verdict.title}


def _verdict_tones(verdict: Health) -> dict[str, str]:
    tones = {"glyph": str(verdict.tone)}
    return tones | {"health": str(verdict.tone)} if verdict.alarm else tones


def _numbers(overview: Overview) -> dict[str, str]:
    targets, failing = overview.targets, overview.states.get(State.FAILING, 0)
    late = overview.lateness
    measured = late.count > 0
    return {
        "as-of": formatting.instant(overview.as_of_ms),
        "on-time": formatting.share(targets - overview.overdue, targets),
        "targets": formatting.exact(targets),
        "late": formatting.exact(overview.overdue),
        "late-share": formatting.share(overview.overdue, targets),
        "failing": formatting.exact(failing),
        "failing-share": formatting.share(failing, targets),
        "letters": formatting.exact(sum(overview.dead_letters.values())),
        "throughput": formatting.rate(overview.polls_per_second),
        "p50": formatting.duration(late.p50_ms) if measured else formatting.NOT_MEASURED,
        "p99": formatting.duration(late.p99_ms) if measured else formatting.NOT_MEASURED,
        "max": formatting.duration(late.max_ms) if measured else formatting.NOT_MEASURED,
    }


def _number_tones(overview: Overview) -> dict[str, str]:
    """Only what is wrong is coloured: a healthy page is quiet."""
    loud = {
        "on-time": (health.is_late(overview), Tone.LATE),
        "late": (health.is_late(overview), Tone.LATE),
        "failing": (overview.states.get(State.FAILING, 0) > 0, Tone.FAILING),
        "letters": (bool(overview.dead_letters), Tone.LATE),
        "p99": (overview.lateness.p99_ms > health.LATE_P99_MS, Tone.LATE),
        "leader": (overview.leader is None, Tone.FAILING),
    }
    marks = {
        f"mark-{state}": str(tone)
        for state, tone in STATES.items()
        if overview.states.get(state, 0)
    }
    return marks | {cell: str(tone) for cell, (wrong, tone) in loud.items() if wrong}


def _board(overview: Overview) -> dict[str, str]:
    texts = {f"state-{state}": formatting.exact(overview.states.get(state, 0)) for state in STATES}
    texts |= {
        f"share-{state}": formatting.share(overview.states.get(state, 0), overview.targets)
        for state in STATES
    }
    texts |= {
        "place-due": formatting.exact(overview.due),
        "place-flight": formatting.exact(overview.in_flight),
    }
    texts["breakers"] = formatting.exact(overview.breakers_open + overview.opened_by_hand)
    outcomes = sorted(overview.outcomes.items(), key=lambda item: (-item[1], item[0]))
    texts["outcomes"] = (
        " · ".join(f"{name} {formatting.count(n)}" for name, n in outcomes)
        or formatting.NOT_MEASURED
    )
    missed = overview.totals.get("missed_slots")
    texts["missed"] = formatting.NOT_MEASURED if missed is None else formatting.count(missed)
    return texts


def _leader(overview: Overview) -> dict[str, str]:
    leader = overview.leader
    standbys = {"standbys": formatting.exact(overview.standbys)}
    if leader is None:
        return standbys | {
            "leader": "none",
            "leader-for": formatting.NOT_MEASURED,
            "epoch": formatting.NOT_MEASURED,
        }
    led_for = formatting.age(overview.as_of_ms - leader.since_ms)
    return standbys | {
        "leader": leader.name,
        "leader-for": led_for,
        "epoch": formatting.exact(leader.epoch),
    }


def _causes(overview: Overview) -> dict[str, str]:
    codes = Counter(error.code for error in overview.errors)
    causes = " · ".join(f"{code} {n}" for code, n in codes.most_common())
    return {"causes": f"By cause, of the last {len(overview.errors)}: {causes}" if codes else ""}


def _fill(
    table: overview_tables.Table, overview: Overview, texts: dict[str, str], tones: dict[str, str]
) -> tuple[str, ...]:
    rows = {row.key: row for row in table.rows(overview)}
    shown = list(rows.values())[: table.limit]
    for row in shown:
        texts.update({f"{table.id}/{row.key}/{column}": text for column, text in row.texts.items()})
        tones.update(
            {f"{table.id}/{row.key}/{column}": str(tone) for column, tone in row.tones.items()}
        )
    hidden = _totals(overview).get(table.id, len(rows)) - len(shown)
    texts[f"{table.id}-more"] = f"{formatting.exact(hidden)} more, not shown" if hidden > 0 else ""
    return tuple(row.key for row in shown)


def _totals(overview: Overview) -> dict[str, int]:
    """Tables whose rows are cut before they come here."""
    return {overview_tables.QUEUES.id: len(overview.loads)}
