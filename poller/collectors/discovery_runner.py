"""Runs the discovery of one collector at one address until it ends or its time is over.

This is the only module that calls `discover`. A collector may hang, swallow its cancellation, raise
anything or suggest what is no suggestion: the answer comes in time, and it has no secrets.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from poller import errors, plugins, poll_secrets
from poller.collectors import poll_runner
from poller.collectors.api import Discovers, Poll, Suggestion
from poller.collectors.memory import answer_budget

#: A collector that suggests more than this for one address does not end by itself.
MAXIMUM = 100
#: Texts of a device that one suggestion carries, and characters of each.
MOST_FACTS = 8
LONGEST_FACT = 300


async def suggestions(collector: Any, poll: Poll, within_s: float) -> list[Suggestion]:
    """Return the suggestions of a collector that can discover. Raises only DeviceError."""
    finding = asyncio.create_task(_find(collector, collector.name, poll))
    _, late = await asyncio.wait([finding], timeout=within_s)
    if late:
        finding.cancel()
        raise errors.DeviceTimeout(f"no answer within {within_s:g} s")
    try:
        return finding.result()
    except errors.DeviceError as error:
        raise poll_runner.cleaned(error, poll.credential) from None
    finally:
        answer_budget.shared.release(poll)


async def _find(collector: Discovers, name: str, poll: Poll) -> list[Suggestion]:
    poll_secrets.use(poll.credential)  # in this task only
    found: list[Suggestion] = []
    try:
        async for each in collector.discover(poll):
            found.append(_checked(each, poll))
            if len(found) == MAXIMUM:
                break
    except errors.DeviceError:
        raise
    except BaseException as error:  # noqa: BLE001  the door to a plugin, which may raise SystemExit
        text = plugins.error_text(error)
        raise errors.CollectorCrashed(f"collector {name} crashed", cause=text) from None
    return found


def _checked(each: Any, poll: Poll) -> Suggestion:
    """Return a suggestion of plain values. Raises TypeError for what is none."""
    if not isinstance(each, Suggestion):
        raise TypeError(f"it suggests a {type(each).__name__}, not an api.Suggestion")
    options = json.loads(json.dumps(dict(each.options)))
    facts = {
        _text(key, poll): _text(value, poll) for key, value in list(each.facts.items())[:MOST_FACTS]
    }
    return Suggestion(options, _text(each.reason, poll), _text(each.name, poll), facts)


def _text(value: object, poll: Poll) -> str:
    """Return a text of a device in one line, bounded, without the secret that was sent to it."""
    line = " ".join(str(value).split())[:LONGEST_FACT]
    return poll_runner.scrub(line, poll.credential)
