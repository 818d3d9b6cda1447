"""The table of situations: each has its cause and its full sentence, and docs/why.md says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from poller.domain.why import causes, explanation
from poller.domain.why.causes import Cause
from poller.domain.why.target_facts import RequiredTag, StoreFaults, TargetFacts
from tests.unit.domain.why.situations import (
    HEALTHY,
    NOW,
    QUEUE,
    ROW,
    SITUATIONS,
    Situation,
    failing,
    in_cluster,
    on_board,
    runs,
    worker,
)

PAGE = Path(__file__).parents[4] / "docs" / "why.md"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
def test_each_situation_has_its_sentence(situation: Situation) -> None:
    """The first cause is the one to act on, and its sentence says all of it."""
    found = explanation.explain(situation.facts)
    assert (found.cause, found.sentence) == (situation.cause, situation.sentence)


def test_every_cause_is_in_the_table() -> None:
    """A new cause needs a situation."""
    assert {each.cause for each in SITUATIONS} == set(Cause)


def test_the_page_shows_each_situation() -> None:
    """docs/why.md has the sentence of every situation."""
    rows = [f"| {each.name} | {each.sentence} |" for each in SITUATIONS]
    lines = PAGE.read_text().splitlines()
    assert [row for row in rows if row not in lines] == []


def test_a_cause_of_the_cluster_comes_before_one_of_the_target() -> None:
    """Without a leader and with an open breaker, the leader is named first; the rest follows."""
    [broken] = [each.facts for each in SITUATIONS if each.cause is Cause.BREAKER_OPEN]
    found = explanation.explain(in_cluster(broken, leader=None))
    assert found.cause is Cause.LEADER_MISSING
    [other] = found.also
    assert "the breaker is open" in other


def test_consequences_of_a_stop_are_not_told_beside_it() -> None:
    """A target is overdue because no worker runs, which is told once."""
    late = on_board(at_ms=NOW - 600_000)
    assert causes.found(in_cluster(late, living=())) == [Cause.NO_WORKER]


def test_failures_of_several_kinds_are_told_as_failures() -> None:
    """Only the newest one has a name when the runs before ended in another way."""
    status = failing(3)
    mixed = replace(on_board(status=status), runs=(*runs(1), *runs(2, "unreachable")[1:]))
    sentence = explanation.explain(mixed).sentence
    assert "the last 3 polls failed, the newest timed out" in sentence


def test_a_target_without_a_site_has_no_words_about_neighbours() -> None:
    """A device without a site has no neighbours to compare with."""
    facts = replace(on_board(status=failing(1)), site=TargetFacts(NOW, 7).site)
    assert "neighbour" not in explanation.explain(facts).sentence


def test_a_target_that_a_person_stopped_is_not_bad() -> None:
    """Only faults are bad; `poller why` ends with code 1 for these."""
    bad = {cause for cause in Cause if cause.is_bad}
    assert Cause.BREAKER_OPEN in bad
    assert bad.isdisjoint({Cause.PAUSED, Cause.DISABLED, Cause.NEVER_POLLED, Cause.HEALTHY})


def test_the_hint_of_a_disabled_target_enables_it() -> None:
    """The command names the target."""
    disabled = replace(HEALTHY, inventory=replace(ROW, target_enabled=False))
    assert explanation.explain(disabled).hint == "poller target edit sw1/snmp --enable"


def test_both_stores_away_is_told_of_redis_first() -> None:
    """Without Redis nothing is known, so nothing else is told."""
    facts = TargetFacts(0, 7, "sw1", StoreFaults(redis="refused", sql="refused"))
    found = explanation.explain(facts)
    assert (found.cause, found.also) == (Cause.REDIS_AWAY, [])
    assert facts.name == "sw1"


@pytest.mark.parametrize(
    ("required", "origin", "hint"),
    [
        (
            [("zone=dmz", "site")],
            "site ams requires zone=dmz.",
            "poller worker --tags zone=dmz, or poller site edit ams --no-requires",
        ),
        (
            [("rack=1", "device"), ("zone=dmz", "device")],
            "device sw1 requires zone=dmz.",
            "poller worker --tags rack=1,zone=dmz, or poller device edit sw1 --require rack=1",
        ),
        (
            [("zone=dmz", "target")],
            "the target requires zone=dmz.",
            "poller worker --tags zone=dmz, or poller target edit sw1/snmp --no-requires",
        ),
        ([], "1 worker live, without it.", "poller workers"),
    ],
)
def test_a_missing_tag_is_told_with_its_origin_and_both_ways_out(
    required: list[tuple[str, str]], origin: str, hint: str
) -> None:
    """A worker with all tags, or an edit of who requires the missing one; other tags stay."""
    row = replace(ROW, required=[RequiredTag(*each) for each in required])
    tags = ";".join(text for text, _ in required) or "zone=dmz"
    living = (worker(tags={"rack": "1"}),)
    facts = in_cluster(on_board(queue=f"{QUEUE};{tags}"), living=living)
    found = explanation.explain(replace(facts, inventory=row))
    assert found.cause is Cause.UNROUTABLE
    assert (found.sentence.endswith(origin), found.hint) == (True, hint), found.sentence


def test_a_long_message_keeps_its_end_which_says_why() -> None:
    """The middle is left out: the beginning says what failed, the end why."""
    text = "cannot read " + "x" * 300 + ": connection refused by 192.0.2.1"
    found = explanation.explain(on_board(status=failing(1, "unreachable", text)))
    assert "cannot read xxx" in found.sentence
    assert "connection refused by 192.0.2.1" in found.sentence
    assert "x" * 100 not in found.sentence
