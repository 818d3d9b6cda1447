"""What an action on a device did, as the page after it says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.presentation import formatting
from poller.presentation.health import GLYPHS, Tone
from poller.service.operations.poll_actions import WAITING, PollResult

_DONE = {
    "pause": "Paused: not polled until the end of the pause, except on demand.",
    "resume": "Resumed: polled as usual again.",
    "reset": "Breaker reset: polled at the next slot.",
    "requeue": "Requeued: polled now; a success clears the dead letter.",
    "drop": "Dropped: the dead letter is removed, and the target is disabled.",
    "enable": "Enabled: polled again.",
    "disable": "Disabled: not polled until it is enabled again.",
    "edit": "Saved: polled with the new values from the next poll on.",
    "add": "Added: the first poll comes within one interval.",
    "target": "Added: the first poll comes within one interval.",
    "remove": "Removed.",
    "same": "Nothing was changed.",
}
_TONES = {"ok": Tone.OK, "degraded": Tone.LATE, "failing": Tone.FAILING, WAITING: Tone.UNKNOWN}


@dataclass(frozen=True, slots=True)
class PollLine:
    """The result of one poll on demand."""

    target: str
    state: str
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class PollNote:
    """The results of a poll on demand; `waiting` of them are missing."""

    lines: Sequence[PollLine]
    waiting: int

    @property
    def text(self) -> str:
        """The known result, in words."""
        if self.waiting:
            return f"Polling: {formatting.counted(self.waiting, 'result')} to come."
        return "Polled."


def done(word: str, device: str, target: str) -> str:
    """Return what an action did; "" for none."""
    text = _DONE.get(word, "")
    name = f"{device}/{target}" if target else device
    return f"{name}: {text[:1].lower()}{text[1:]}" if text else ""


def poll_note(results: Sequence[PollResult]) -> PollNote:
    """Return the results of a poll on demand as a page shows them."""
    lines = [_line(each) for each in results]
    return PollNote(lines, sum(each.state == WAITING for each in results))


def _line(result: PollResult) -> PollLine:
    tone = _TONES.get(result.state, Tone.UNKNOWN)
    error = ": ".join(part for part in (result.error_code, result.message) if part)
    values = formatting.counted(result.samples, "value")
    text = error if error and result.state != WAITING else values
    if result.state == WAITING:
        text = "no result yet"
    return PollLine(result.target, f"{GLYPHS[tone]} {result.state}", str(tone), text)
