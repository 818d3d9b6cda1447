"""What it does when the device does not do its part."""

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

#: Seeds of devices that talk nonsense, each in another way: bent, of another service, noise, endless, cut short.
BABBLERS = (0, 1, 2, 5, 7)
#: What nothing but blocking code explains, also on a busy machine.
LAG_S = 0.4
_CANCEL_AFTER_S = 0.1


async def deadline(subject: Subject) -> None:
    """A silent device is an error by the deadline, and meanwhile others are polled."""
    with hostile(Manner.SILENT) as port:
        seen = await subject.poll(subject.at(port), BRIEF_S)
        if seen.lag_s > LAG_S:
            raise Failed(
                f"nothing else could run for {seen.lag_s:.1f} s: await instead of blocking, or say blocking = True"
            )
        if seen.took_s > BRIEF_S + poll_runner.GRACE_S * 0.8:
            raise Failed(
                f"its deadline was after {BRIEF_S:g} s, and it came to an end after {seen.took_s:.1f} s: "
                "do not catch CancelledError or BaseException"
            )
        _check_error(subject, seen, "a silent device")
        if _blocks(subject) and not await settled(lambda: not seen.ear.at_work):
            raise Failed(
                "its thread goes on after the deadline: give sockets `poll.deadline - time.monotonic()` seconds"
            )


async def cancellation(subject: Subject) -> None:
    """A poll that is cut off in the middle, because its worker stops, leaves nothing behind."""
    if _blocks(subject):
        raise Inapplicable("nobody can cancel a thread")
    with hostile(Manner.SILENT) as port:
        device = subject.at(port)
        await _cut_off(subject, device)  # what is made once, and kept, is made now
        before = Held.now()
        for _ in range(3):
            await _cut_off(subject, device)
        if not await settled(lambda: Held.now().tasks <= before.tasks):
            raise Failed(
                "tasks go on after it was cancelled: cancel what you started, in a `finally`"
            )
        if not await settled(lambda: Held.now().files < before.files + 3):
            raise Failed("sockets stay open after it was cancelled: close them in a `finally`")


async def _cut_off(subject: Subject, device: Device) -> None:
    loop = asyncio.get_running_loop()
    poll = Poll(
        1,
        "device",
        device.address,
        subject.checked(device),
        subject.credential,
        loop.time() + AMPLE_S,
    )
    collector: Any = Ear(subject.make())
    polling = loop.create_task(poll_runner.run_poll(collector, poll))
    await asyncio.sleep(_CANCEL_AFTER_S)
    polling.cancel()
    with suppress(asyncio.CancelledError):
        await polling


async def refused(subject: Subject) -> None:
    """A port that nobody listens on is an error of the device."""
    with hostile(Manner.REFUSES) as port:
        _check_error(
            subject, await subject.poll(subject.at(port), BRIEF_S), "a port that nobody listens on"
        )


async def reset(subject: Subject) -> None:
    """A device that resets the connection, or hangs up, is an error of the device."""
    for manner in (Manner.RESETS, Manner.HANGS_UP):
        with hostile(manner) as port:
            _check_error(
                subject, await subject.poll(subject.at(port), BRIEF_S), f"a device that {manner}"
            )


async def garbage(subject: Subject) -> None:
    """A device that says what is not the protocol is an error of the device."""
    for number, seed in enumerate(BABBLERS):
        with hostile(Manner.STOPS if number % 2 else Manner.BABBLES, seed) as port:
            _check_error(
                subject,
                await subject.poll(subject.at(port), BRIEF_S / 2),
                "a device that talks nonsense",
            )


def _check_error(subject: Subject, seen: Seen, device: str) -> None:
    if seen.is_own_fault:
        kind = next((type(error).__name__ for error in reversed(seen.ear.raised)), "")
        advice = f"catch {kind} and raise" if kind and kind != "CancelledError" else "raise"
        raise Failed(
            f"{device} makes the collector fail: {seen.outcome.message}. To do: {advice} an api.DeviceError"
        )
    if seen.outcome.result is Result.OK and not subject.probe:
        raise Failed(
            f"{device} counts as read: raise an api.DeviceError (or, if its readings say so, test it with probe=True)"
        )


def _blocks(subject: Subject) -> bool:
    return bool(getattr(subject.make(), "blocking", False))
