"""The histogram of the overview: how old the data of targets are, in intervals of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poller.domain.fleet.poll_ages import OLD_BAND, PollAges
from poller.presentation import formatting
from poller.presentation.health import Punctuality, Tone
from poller.service.fleet.age_picture import AgePicture

#: The titles of the bands, and of those without any good poll.
TITLES = ("≤ 0.5×", "≤ 1×", "≤ 1.5×", "≤ 3×", "> 3×", "never")
#: The titles as a sentence says them.
_WORDS = ("up to half", "up to 1", "up to 1.5", "up to 3", "more than 3")
_STYLES = ("well", "well", "well", "late", "failing", "unknown")
_HEIGHT = 48
_SLOT = 20
_BAR = 14
_LEAST = 1.5
#: A longer count is told, because its numbers are not of one instant.
_LONG_S = 2.0


def texts(found: AgePicture, targets: int, punctuality: Punctuality) -> dict[str, str]:
    """Return the numbers of the bands, why data are old, and how they were counted."""
    shown = {f"age-{number}": _number(found, each) for number, each in enumerate(_numbers(found))}
    return {
        **shown,
        "ages-why": _why(found, punctuality),
        "ages-count": _counted(found, targets),
    }


def tones(found: AgePicture, punctuality: Punctuality) -> dict[str, str]:
    """Return the tones of bands with old data. Our own downtime colours no target."""
    if punctuality is Punctuality.STOPPED:
        return {}
    bands = found.ages.bands
    coloured = {OLD_BAND: Tone.LATE, OLD_BAND + 1: Tone.FAILING}
    return {f"age-{number}": str(tone) for number, tone in coloured.items() if bands[number]}


def picture(found: AgePicture, punctuality: Punctuality) -> str:
    """Return the bars as SVG, and the same in words for screen readers."""
    styles: Sequence[str] = _STYLES
    if punctuality is Punctuality.STOPPED:
        styles = ("unknown",) * len(TITLES)
    numbers = _numbers(found)
    highest = max(numbers)
    bars = [
        _bar(slot, number / highest, style)
        for slot, (number, style) in enumerate(zip(numbers, styles, strict=True))
        if number
    ]
    return (
        f'<svg class="ages" viewBox="0 0 {_SLOT * len(TITLES)} {_HEIGHT}" role="img"'
        f' preserveAspectRatio="none" aria-label="{_sentence(found)}">{"".join(bars)}</svg>'
    )


def _bar(slot: int, share: float, style: str) -> str:
    """One bar; few targets are seen as well."""
    height = max(_LEAST, _HEIGHT * share)
    x = slot * _SLOT + (_SLOT - _BAR) / 2
    place = f'x="{x:g}" y="{_HEIGHT - height:.1f}" width="{_BAR}" height="{height:.1f}"'
    return f'<rect class="{style}" {place}/>'


def _numbers(found: AgePicture) -> Sequence[int]:
    return [*found.ages.bands, found.ages.never]


def _number(found: AgePicture, number: int) -> str:
    """The number of targets of a band, or its share of those that were looked at so far."""
    if found.whole:
        return formatting.exact(number)
    looked_at = found.ages.looked_at
    if not looked_at:
        return formatting.NOT_MEASURED
    percent = 100 * number / looked_at
    return "< 1 %" if 0 < percent < 1 else f"≈ {percent:.0f} %"


def _why(found: AgePicture, punctuality: Punctuality) -> str:
    ages = found.ages
    if not ages.looked_at:
        return ""
    if punctuality is Punctuality.STOPPED:
        return "Nothing is polled, so all data grow older: our own downtime, not that of devices."
    if ages.never == ages.looked_at:
        return "No target has had a good poll yet."
    parts = [*_missed(ages), *_without(ages)]
    return " ".join(parts) or "No poll is missing."


def _missed(ages: PollAges) -> Iterator[str]:
    if ages.old:
        have = "has" if ages.old == 1 else "have"
        reasons = ", ".join(_reasons(ages))
        yield f"{formatting.counted(ages.old, 'target')} {have} missed a poll: {reasons}."


def _without(ages: PollAges) -> Iterator[str]:
    if ages.never:
        has = "has" if ages.never == 1 else "have"
        yield f"{formatting.counted(ages.never, 'target')} {has} had no good poll yet."


def _reasons(ages: PollAges) -> Iterator[str]:
    """`41 failing, 3 of a dark site, 2 paused, 1 late`"""
    parts = (
        (ages.failing, "failing"),
        (ages.held, "of a dark site"),
        (ages.paused, "paused by hand"),
        (ages.late, "late"),
    )
    for number, word in parts:
        if number:
            yield f"{formatting.exact(number)} {word}"


def _counted(found: AgePicture, targets: int) -> str:
    looked_at = formatting.exact(found.ages.looked_at)
    if not found.as_of_ms:
        return "Being counted."
    if not found.whole:
        return f"Looked at {looked_at} of {formatting.counted(targets, 'target')} so far."
    if found.seconds > _LONG_S:
        return f"Counted over {found.seconds:.0f} s."
    return ""


def _sentence(found: AgePicture) -> str:
    """The bars in words."""
    ages = found.ages
    if not ages.looked_at:
        return "The age of the last good poll is not known yet."
    parts = [
        f"{formatting.exact(number)} {words}"
        for number, words in zip(ages.bands, _WORDS, strict=True)
    ]
    never = f"{formatting.exact(ages.never)} without any good poll"
    return f"Targets by the age of their last good poll in intervals: {', '.join(parts)}; {never}."
