"""Who gets another try at once: flukes do, a site of which nobody answers does not."""

from __future__ import annotations

from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.settings import Settings
from poller.state.board.board_values import Start, Started
from poller.workers.batch.collection import Collected
from poller.workers.batch.retries import Retries
from poller.workers.batch.target_cache import Known

NOW = 1_800_000_000_000
START = Start(NOW, "poll.snmp", 0, (), 0.0)
GOOD = Outcome(Result.OK)
SILENT = Outcome(Result.FAILED, "timeout", retryable=True)
PART = Outcome(Result.PARTIAL, "timeout", retryable=True)


def chosen(retries: Retries, site: str, *outcomes: Outcome) -> int:
    """How many of these polls are tried again."""
    known = {
        n: Known(PollTarget(n, 1, "snmp", n, f"d{n}", "", site, "snmp", 60_000, 5_000), 1)
        for n in range(99)
    }
    done = [
        (Started(n, Result.OK, NOW, 1, "poll.snmp", Status(State.OK)), Collected(n, outcome, 3_000))
        for n, outcome in enumerate(outcomes)
    ]
    return len(retries.choose(0, START, done, known))


def test_a_fluke_is_tried_again() -> None:
    """So are several."""
    assert chosen(Retries(Settings()), "west", GOOD, SILENT, GOOD, SILENT) == 2


def test_nobody_is_tried_again_once_ten_of_a_site_in_a_row_were_silent() -> None:
    """Whether in one round or in several; other sites, and devices that are in none, are not concerned."""
    retries = Retries(Settings())
    assert chosen(retries, "west", *[SILENT] * 9) == 9
    assert chosen(retries, "west", SILENT) == 0
    assert chosen(retries, "west", SILENT) == 0
    assert chosen(retries, "east", SILENT) == 1
    assert chosen(retries, "", *[SILENT] * 12) == 12
    assert chosen(Retries(Settings()), "north", *[SILENT] * 10) == 0


def test_one_answer_of_the_site_is_enough_to_try_again() -> None:
    """Half an answer is one, too."""
    retries = Retries(Settings())
    for answer in (GOOD, PART):
        assert chosen(retries, "west", *[SILENT] * 10) == 0
        assert chosen(retries, "west", answer) == 0
        assert chosen(retries, "west", SILENT) == 1
