"""What it does with connections that outlive a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

from poller.collectors.api import KeepsSessions, Poll
from poller.collectors.sessions import Sessions
from poller.testing.relay import Relay, relayed
from poller.testing.subject import AMPLE_S, Failed, Held, Inapplicable, Subject, settled


async def sessions(subject: Subject) -> None:
    """A session is kept, replaced without an error when the device ended it, and closed when it is over."""
    collector: Any = subject.make()
    if not isinstance(collector, KeepsSessions):
        raise Inapplicable("it keeps no sessions")
    _check_key(subject, collector)
    if subject.port is None or subject.port not in subject.device.options:
        raise Inapplicable(f"the device of the test does not say its {subject.port}")
    with relayed(subject.device.address, subject.device.options[subject.port]) as line:
        await _check_life(subject, collector, line)


def _check_key(subject: Subject, collector: Any) -> None:
    deadline = asyncio.get_running_loop().time() + AMPLE_S
    poll = Poll(
        1, "device", subject.device.address, subject.checked(), subject.credential, deadline
    )
    key = collector.session_key(poll)
    if not isinstance(key, Hashable) or key != collector.session_key(poll):
        raise Failed(
            "its session_key is not the same for the same poll, or not hashable: give a tuple of options"
        )
    secrets = subject.credential.secrets() if subject.credential else []
    if any(secret in repr(key) for secret in secrets if len(secret) > 3):
        raise Failed(
            "the secret is in its session_key: the platform tells credentials apart by itself"
        )


async def _check_life(subject: Subject, collector: Any, line: Relay) -> None:
    await subject.poll(
        subject.at(line.port), collector=collector
    )  # what is made once, and kept, is made now
    before = Held.now()
    kept = Sessions()
    try:
        for poll in ("first", "second"):
            seen = await subject.poll(subject.at(line.port), collector=collector, sessions=kept)
            if not seen.is_ok:
                raise Failed(f"with sessions kept, its {poll} poll failed: {seen.told}")
        if kept.opened != 1:
            raise Failed(
                f"two polls opened {kept.opened} sessions: read inside `await poll.session(self, work)`"
            )
        line.cut()
        await asyncio.sleep(0.1)  # until the news is here
        seen = await subject.poll(subject.at(line.port), collector=collector, sessions=kept)
        if not seen.is_ok:
            raise Failed(
                f"after the device had ended the idle session, the next poll failed: {seen.told}. "
                "Raise api.SessionLost when nothing was read yet"
            )
    finally:
        await kept.close()
    if not await settled(lambda: Held.now().files <= before.files):
        raise Failed(
            "connections are open after close_session: close them there, also when not politely"
        )
