"""Checks of sessions that outlive a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

from poller.collectors.api import KeepsSessions, Poll
from poller.collectors.sessions import Sessions
from poller.testing.relay import Relay, relayed
from poller.testing.subject import AMPLE_S, Failed, Held, Inapplicable, Subject, settled


async def sessions(subject: Subject) -> None:
    """A session is reused, replaced without an error when the device ends it, and closed."""
    collector: Any = subject.make()
    if not isinstance(collector, KeepsSessions):
        raise Inapplicable("the collector keeps no sessions")
    _check_key(subject, collector)
    if subject.port is None or subject.port not in subject.device.options:
        raise Inapplicable(f"the device of the test has no option {subject.port}")
    with relayed(subject.device.address, subject.device.options[subject.port]) as relay:
        await _check_lifetime(subject, collector, relay)


def _check_key(subject: Subject, collector: Any) -> None:
    deadline = asyncio.get_running_loop().time() + AMPLE_S
    poll = Poll(
        1, "device", subject.device.address, subject.checked(), subject.credential, deadline
    )
    key = collector.session_key(poll)
    if not isinstance(key, Hashable) or key != collector.session_key(poll):
        raise Failed(
            "its session_key differs for the same poll, or is not hashable: "
            "return a tuple of options"
        )
    secrets = subject.credential.secrets() if subject.credential else []
    if any(secret in repr(key) for secret in secrets if len(secret) > 3):
        raise Failed(
            "the secret is in its session_key: leave it out, the platform adds the credential"
        )


async def _check_lifetime(subject: Subject, collector: Any, relay: Relay) -> None:
    device = subject.at(relay.port)
    await subject.poll(device, collector=collector)  # caches of the process are filled now
    before = Held.now()
    pool = Sessions()
    try:
        for poll in ("first", "second"):
            seen = await subject.poll(device, collector=collector, sessions=pool)
            if not seen.is_ok:
                raise Failed(f"with a session pool, its {poll} poll failed: {seen.told}")
        if pool.opened != 1:
            raise Failed(
                f"two polls opened {pool.opened} sessions: "
                "read inside `await poll.session(self, work)`"
            )
        relay.cut()
        await asyncio.sleep(0.1)  # until the collector's side has received the close
        seen = await subject.poll(device, collector=collector, sessions=pool)
        if not seen.is_ok:
            raise Failed(
                f"after the device closed the idle session, the next poll failed: {seen.told}. "
                "Raise api.SessionLost when nothing was read yet"
            )
    finally:
        await pool.close()
    if not await settled(lambda: Held.now().files <= before.files):
        raise Failed(
            "connections are open after close_session: close them there, even without a logout"
        )
