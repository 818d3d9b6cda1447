"""Parts that the sentences of several causes share."""

from __future__ import annotations

from collections.abc import Sequence

from poller.domain.failures import error_codes
from poller.domain.failures.outcome import clean
from poller.domain.inventory import duration
from poller.domain.scheduling.interval import Policy
from poller.domain.why.target_facts import TargetFacts

NO_LEADER = "No leader: nothing is being scheduled"
NO_WORKER = "No worker is running: nothing is being polled"
#: An interval up to this is given in seconds.
_SECONDS_UP_TO_MS = 120_000
#: Characters of a message within a sentence: of its beginning, which says what failed, and of its
#: end, which says why.
_MESSAGE_HEAD = 60
_MESSAGE_TAIL = 100


def takes_no_writes(error: str) -> str:
    """The sentence for a Redis that can be read but not written, without its full stop."""
    return f"Redis takes no writes, so nothing can be scheduled: {without_dot(error)}"


def without_dot(text: str) -> str:
    """An error text of another program, to be continued or ended here."""
    return text.rstrip(". ")


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 worker`, `2 workers`, `3 crashes`"""
    if number != 1:
        noun = plural or f"{noun}s"
    return f"{number:,} {noun}"


def span(ms: int) -> str:
    """A wait or an age in whole seconds: `40 s`, `3 m`, `4 h 10 m`."""
    seconds = max(0, ms) // 1000
    if not seconds:
        return "0 s"
    return duration.rounded_text(seconds * 1000)


def interval(ms: int) -> str:
    """`60 s`, `90 s`, `5 m`"""
    if ms % 1000 == 0 and ms <= _SECONDS_UP_TO_MS:
        return f"{ms // 1000} s"
    return duration.rounded_text(ms)


def every(facts: TargetFacts) -> str:
    """`Polled every 60 s`, or `Polled every 8 s (adaptive, 5 s to 5 m)`"""
    text = f"Polled every {interval(facts.interval_ms)}"
    row = facts.inventory
    if row is None or row.policy is not Policy.ADAPTIVE:
        return text
    shortest = interval(row.min_ms or row.interval_ms)
    longest = interval(row.max_ms or row.interval_ms)
    return f"{text} (adaptive, {shortest} to {longest})"


def next_poll(facts: TargetFacts, what: str = "poll") -> str:
    """`next poll in 20 s`, `next probe now`, `next poll 3 m overdue`, `the poll is in flight`"""
    board = facts.board
    if board is None or board.place in ("held", ""):
        return f"next {what} unknown"
    if board.place == "in_flight":
        return f"its {what} is in flight"
    ahead_ms = board.at_ms - facts.now_ms if board.at_ms else 0
    if ahead_ms >= 1000:
        return f"next {what} in {span(ahead_ms)}"
    if ahead_ms > -1000:
        return f"next {what} now"
    return f"next {what} {span(-ahead_ms)} overdue"


def overdue_by(facts: TargetFacts) -> str:
    """`overdue by 3 m`; empty for a target that is not overdue."""
    board = facts.board
    if board is None or board.place not in ("due", "urgent") or not board.at_ms:
        return ""
    late_ms = facts.now_ms - board.at_ms
    return f"overdue by {span(late_ms)}" if late_ms >= 1000 else ""


def last_polls(facts: TargetFacts) -> str:
    """`the last 4 polls timed out`, `the last poll failed: connection refused`"""
    number = max(1, facts.status.failures)
    polls = "the last poll" if number == 1 else f"the last {number:,} polls"
    if number == 1 or _are_all_alike(facts, number):
        return f"{polls} timed out" if _timed_out(facts) else f"{polls} failed: {message(facts)}"
    if _timed_out(facts):
        return f"{polls} failed, the newest timed out"
    return f"{polls} failed, the newest with: {message(facts)}"


def _timed_out(facts: TargetFacts) -> bool:
    return facts.status.code == error_codes.TIMEOUT


def message(facts: TargetFacts) -> str:
    """The message of the last poll, shortened; else the meaning of its code."""
    row = error_codes.TABLE.get(facts.status.code)
    text = facts.status.message or (row.meaning if row else facts.status.code)
    return _shortened(without_dot(clean(text)))


def _shortened(text: str) -> str:
    """A long text without its middle."""
    if len(text) <= _MESSAGE_HEAD + _MESSAGE_TAIL:
        return text
    return f"{text[:_MESSAGE_HEAD].rstrip()} ... {text[-_MESSAGE_TAIL:].lstrip()}"


def last_good(facts: TargetFacts) -> str:
    """`the last good poll was 3 m ago`, or `never a good poll`"""
    if not facts.status.ok_ms:
        return "no poll was ever good"
    return f"the last good poll was {span(facts.now_ms - facts.status.ok_ms)} ago"


def site(facts: TargetFacts) -> str:
    """`the site is up: 41 of 42 neighbours answer`; empty without neighbours."""
    found = facts.site
    if found.outage:
        return f"its site {found.name} has been dark for {dark_for(facts)}"
    if not found.name or not found.neighbours:
        return ""
    if found.neighbours == 1:
        verb = "answers" if found.answering else "does not answer"
        return f"its only neighbour at site {found.name} {verb}"
    if not found.answering:
        return f"none of its {found.neighbours:,} neighbours at site {found.name} answers"
    of = "of a sample of" if found.is_sample else "of"
    number = f"{found.answering:,} {of} {found.neighbours:,} neighbours answer"
    if 2 * found.answering < found.neighbours:
        return f"the site is in trouble: only {number}"
    return f"the site is up: {number}"


def dark_for(facts: TargetFacts) -> str:
    """How long the site has been dark."""
    outage = facts.site.outage
    return span(facts.now_ms - outage.since_ms) if outage else "some time"


def joined(parts: Sequence[str]) -> str:
    """The parts that are not empty as one sentence: `a; b; c.`"""
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}."


def _are_all_alike(facts: TargetFacts, number: int) -> bool:
    """Whether the failures in a row have the same code, as far as the newest runs tell."""
    newest = facts.runs[:number]
    return bool(newest) and {run.error_code for run in newest} == {facts.status.code}
