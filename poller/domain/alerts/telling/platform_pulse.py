"""Whether the platform really works: the condition of the dead man's switch."""

from __future__ import annotations

from poller.domain.record.overview import Overview


def fault(overview: Overview) -> str:
    """Why the platform does not work; "" if it does.

    A fleet without targets works. One whose polls wait for long while none ends does not.
    """
    if not overview.long_overdue:
        return ""
    if overview.polls_per_second > 0:
        return ""
    return (
        f"no poll ended within the last minute, and {overview.long_overdue} targets wait for more "
        "than two of their intervals"
    )
