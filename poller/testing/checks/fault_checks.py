"""Checks with devices that are silent, refuse, reset, hang up or send garbage."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.domain.failures.outcome import Result
from poller.testing.hostile import Manner, hostile
from poller.testing.subject import (
    AMPLE_S,
    BRIEF_S,
    Device,
    Ear,
    Failed,
    Held,
    Inapplicable,
    Seen,
    Subject,
    settled,
)

#: Seeds of devices that send garbage: inverted, of another service, noise, endless, cut short.
BABBLERS = (0, 1, 2, 5, 7)
#: A longer lag of the event loop means blocking code, even on a busy machine.
LAG_S = 0.4
_CANCEL_AFTER_S = 0.1


async def deadline(subject: Subject) -> None:
    """A silent device is an error at the deadline, and other polls run meanwhile."""
    with hostile(Manner.SILENT) as port:
        seen = await subject.poll(subject.at(port), BRIEF_S)
        if seen.lag_s > LAG_S:
            raise Failed(
                f"the event loop was blocked for {seen.lag_s:.1f} s: "
                "await instead of blocking, or set blocking = True"
            )
        if seen.took_s > BRIEF_S + poll_runner.GRACE_S * 0.8:
            raise Failed(
                f"its deadline was after {BRIEF_S:g} s, and it ended after {seen.took_s:.1f} s: "
                "do not catch CancelledError or BaseException"
            )
        _check_error(subject, seen, "a silent device")
        if _blocks(subject) and not await settled(lambda: not seen.ear.at_work):
            raise Failed(
                "its thread goes on after the deadline: "
                "set the timeout of sockets to `poll.deadline - time.monotonic()`"
            )


async def cancellation(subject: Subject) -> None:
    """A cancelled poll, as when its worker stops, leaves no task and no socket."""
    if _blocks(subject):
        raise Inapplicable("a thread cannot be cancelled")
    with hostile(Manner.SILENT) as port:
        device = subject.at(port)
        await _cut_off(subject, device)  # caches of the process are filled now
        before = Held.now()
        for _ in range(3):
            await _cut_off(subject, device)
        if not await settled(lambda: Held.now().tasks <= before.tasks):
            raise Failed(
                "tasks go on after a cancelled poll: cancel what you started in a `finally`"
            )
        if not await settled(lambda: Held.now().files < before.files + 3):
            raise Failed("sockets stay open after a cancelled poll: close them in a `finally`")


async def _cut_off(subject: Subject, device: Device) -> None:
    loop = asyncio.get_running_loop()
    options = subject.checked(device)
    deadline = loop.time() + AMPLE_S
    poll = Poll(1, "device", device.address, options, subject.credential, deadline)
    collector: Any = Ear(subject.make())
    polling = loop.create_task(poll_runner.run_poll(collector, poll))
    await asyncio.sleep(_CANCEL_AFTER_S)
    polling.cancel()
    with suppress(asyncio.CancelledError):
        await polling


async def refused(subject: Subject) -> None:
    """A closed port is an error of the device."""
    with hostile(Manner.REFUSES) as port:
        seen = await subject.poll(subject.at(port), BRIEF_S)
        _check_error(subject, seen, "a closed port")


async def reset(subject: Subject) -> None:
    """A device that resets or closes the connection is an error of the device."""
    for manner in (Manner.RESETS, Manner.HANGS_UP):
        with hostile(manner) as port:
            seen = await subject.poll(subject.at(port), BRIEF_S)
            _check_error(subject, seen, f"a device that {manner}")


async def garbage(subject: Subject) -> None:
    """A device that sends garbage is an error of the device."""
    for number, seed in enumerate(BABBLERS):
        manner = Manner.STOPS if number % 2 else Manner.BABBLES
        with hostile(manner, seed) as port:
            seen = await subject.poll(subject.at(port), BRIEF_S / 2)
            _check_error(subject, seen, "a device that sends garbage")


def _check_error(subject: Subject, seen: Seen, device: str) -> None:
    if seen.is_own_fault:
        kind = next((type(error).__name__ for error in reversed(seen.ear.raised)), "")
        advice = f"catch {kind} and raise" if kind and kind != "CancelledError" else "raise"
        raise Failed(
            f"{device} makes the collector fail: {seen.outcome.message}. "
            f"Remedy: {advice} an api.DeviceError"
        )
    if seen.outcome.result is Result.OK and not subject.probe:
        raise Failed(
            f"{device} counts as read: raise an api.DeviceError "
            "(or test with probe=True if the readings report it)"
        )


def _blocks(subject: Subject) -> bool:
    return bool(getattr(subject.make(), "blocking", False))
